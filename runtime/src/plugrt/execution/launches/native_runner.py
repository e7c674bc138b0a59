"""`compile_runner`: runners of the compiled core for calls that need no placement."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import NoReturn

import numpy as np

from plugrt.execution.arrays.arguments import ParameterType
from plugrt.execution.arrays.array_making import share_buffers
from plugrt.execution.arrays.aval import Aval, is_placed
from plugrt.execution.arrays.casting import cast
from plugrt.execution.executables.bounded_executable import BoundedExecutable
from plugrt.execution.launches.loaded_program import LoadedProgram
from plugrt.execution.launches.placer import can_put_host_value, is_placed_for
from plugrt.execution.placement.plan import Plan
from plugrt.execution.transfers.quick_puts import compile_move
from plugrt.execution.trees import pytrees
from plugrt.interface import LaunchSteps, LoadedExecutable
from plugrt.native.known_dtypes import KNOWN_DTYPES
from plugrt.native.native_core import core

_FROM_LAUNCH, _FIRST_CONSTANT = -1, -2
"""The origin of an output, in the core's encoding; arguments are numbered from 0."""

_KEPT_BYTES = 1 << 21
"""Bytes of host values and results kept for unfinished launches, until their results are ready."""
_FEWEST_KEPT, _MOST_KEPT = 4, 40
"""The number of kept launches: a loop that waits for no result has 32 running on XLA's CPU client.

If not even four fit into the bytes, none is kept.
"""


def compile_runner(
    program: LoadedProgram,
    out_tree: pytrees.PyTreeSpec,
    avals: Sequence[Aval],
    make_slow: Callable[[], Callable[[Sequence[object]], object]],
) -> Callable[[Sequence[object]], object]:
    """Returns a runner in C, which passes unsupported calls to a slow runner in Python.

    The slow runner is made when first needed. It is the result if there is no core, or if the core
    cannot place an argument, or if a call puts results each time.
    """
    if core is None or program.executable is None:
        return make_slow()
    plan = program.plan
    if plan.literals or not set(plan.donated) <= set(plan.kept):
        return make_slow()
    steps = program.executable.launch_steps
    puts = _compile_puts(program, avals, steps)
    if puts is None:
        return make_slow()
    slow = cache(make_slow)
    outputs = core.Outputs(
        avals=program.outputs,
        origins=_find_origins(plan),
        constants=program.constants,
        share=share_buffers,
        tree=_compile_tree(out_tree),
    )
    results = sum(origin == "result" for origin, _ in plan.sources)
    return core.Runner(  # type: ignore[no-any-return]
        launcher=_launcher_of(program.executable, steps, results),
        arity=len(avals),
        kept=plan.kept,
        puts=puts,
        constants=program.constants[: plan.fed],
        donated=tuple(i for i in plan.donated if is_placed(avals[i])),
        taker=plan.name,
        outputs=outputs,
        slow=lambda values: slow()(values),
        explain=partial(_explain, program),
    )


def _launcher_of(executable: LoadedExecutable, steps: LaunchSteps | None, results: int) -> object:
    """Returns the core's launcher: of a library's function, or of functions of the backend."""
    if steps is not None:
        return core.FunctionLauncher(
            launch=steps.launch,
            results=results,
            take=steps.take,
            take_arguments=steps.take_arguments,
            argument_class=steps.argument_class,
            unless=steps.unless,
            explain=partial(_explain_steps, steps.explain),
            donated=steps.donated,
            is_deleted=steps.is_deleted,
            delete=steps.delete,
            tidy=steps.tidy,
            waits_for_uses=steps.waits_for_uses,
        )
    bound = executable if isinstance(executable, BoundedExecutable) else None
    launcher: object = (bound.loaded if bound else executable).launcher
    if type(launcher) in (core.Launcher, core.ShardsLauncher):
        return bound.compiled_launcher(launcher) if bound else launcher
    return core.FunctionLauncher(
        launch=bound.launcher if bound else launcher,
        results=results,
        take=None,
        take_arguments=(),
        argument_class=None,
        unless=(),
        explain=None,
    )


def _explain(program: LoadedProgram, values: Sequence[object], error: Exception) -> NoReturn:
    program.explain(values, _add_frame(error))


def _explain_steps(
    explain: Callable[[Exception, list[object]], Exception], error: Exception, given: list[object]
) -> Exception:
    return explain(_add_frame(error), given)


def _add_frame(error: Exception) -> Exception:
    """Adds a frame of plugrt to an exception of the core, for the traceback filter."""
    try:
        raise error
    except Exception as raised:  # noqa: BLE001  # it is returned
        return raised


def _compile_puts(
    program: LoadedProgram, avals: Sequence[Aval], steps: LaunchSteps | None
) -> tuple[object, ...] | None:
    """Returns a function for each argument that puts or copies it; None for one already placed.

    Returns None for a program with arguments that the core does not place.
    """
    plan, launch = program.plan, program.launch
    scratch_puts = _compile_scratch_puts(program, avals, steps)
    needed, passed = plan.needed, plan.passed
    puts: list[object] = []
    for i in needed:
        aval, (shape, dtype, _) = avals[i], program.types[i]
        put = None
        if not is_placed(aval):
            if i in passed or not can_put_host_value(launch, i):
                return None
            if i in scratch_puts:
                puts.append(scratch_puts[i])
                continue
            number = _is_for_numbers(aval, program.types[i])
            if number and i in plan.donated:  # buffers of numbers are cached
                return None
            compile_put = getattr(launch.client, "compile_put", None)
            put = compile_put and compile_put(shape, dtype, launch.devices[0], number)
            if put is None:
                return None
        elif not is_placed_for(aval, i, launch):
            exclusive = i in passed or i in plan.donated
            if exclusive or not can_put_host_value(launch, i):
                return None
            put = compile_move(aval, launch.devices[0])
            if put is not None and type(put) is not core.Copy:
                put = _compile_function_put(put, shape, dtype, steps)
            if put is None:
                return None
        puts.append(put)
    return tuple(puts[: len(plan.kept)])


def _compile_function_put(
    put: Callable[[object], object],
    shape: tuple[int, ...],
    dtype: np.dtype[np.generic],
    steps: LaunchSteps | None,
) -> object:
    """Returns an object of the core that calls ``put``; None if only Python can put it."""
    if steps is None or dtype not in KNOWN_DTYPES:
        return None
    return core.ScratchPut(
        make=None, is_ready=steps.is_ready, dtype=dtype, shape=shape, kind=None, put=put
    )


def _compile_scratch_puts(
    program: LoadedProgram, avals: Sequence[Aval], steps: LaunchSteps | None
) -> dict[int, object]:
    """Returns, by argument, the object that copies host values to scratch memory or puts them."""
    plan, launch = program.plan, program.launch
    found = {i: at for at, i in enumerate(plan.kept) if avals[i].sharding is None}
    if steps is None or any(program.types[i][1] not in KNOWN_DTYPES for i in found):
        return {}
    numbers = [i for i in found if i not in plan.donated]
    make_scratch = steps.make_scratch if numbers else None
    makers = make_scratch and make_scratch([found[i] for i in numbers])
    makes = {} if makers is None else dict(zip(numbers, makers, strict=True))
    device = launch.devices[0]
    compile_put = getattr(device.client, "compile_function_put", None)
    late = _count_late(program, numbers)
    scratch_puts = {}
    for i in found:
        shape, dtype, _ = program.types[i]
        put = compile_put and compile_put(shape, dtype, device)
        if i not in makes and put is None:
            continue
        scratch_puts[i] = core.ScratchPut(
            make=makes.get(i),
            is_ready=steps.is_ready,
            dtype=dtype,
            shape=shape,
            kind=dtype.kind if _is_for_numbers(avals[i], program.types[i]) else None,
            put=_put_after_cast(put, dtype) if put and not shape else put,
            late=late,
        )
    return scratch_puts


def _is_for_numbers(aval: Aval, expected: ParameterType) -> bool:
    """Whether the argument for a parameter is a Python number or bool of its kind."""
    _, dtype, weak = expected
    return aval.is_number and (weak or dtype.kind == "b")


def _count_late(program: LoadedProgram, numbers: Sequence[int]) -> int:
    """Returns how many unfinished launches may be kept at once, computed from their sizes."""
    shapes = [program.types[i][:2] for i in numbers]
    for aval, (origin, _) in zip(program.outputs, program.plan.sources, strict=True):
        if origin == "result":
            shapes.append((aval.shape, aval.dtype))
    size = sum([math.prod(shape) * dtype.itemsize for shape, dtype in shapes])
    count = _KEPT_BYTES // max(size, 1)
    return min(count, _MOST_KEPT) if count >= _FEWEST_KEPT else 0


def _put_after_cast(
    put: Callable[[object], object], dtype: np.dtype[np.generic]
) -> Callable[[object], object]:
    """Returns a put that also accepts Python's and NumPy's numbers."""
    return lambda value: put(value if type(value) is np.ndarray else cast(value, dtype))


def _find_origins(plan: Plan) -> tuple[int, ...]:
    """Returns the origin of each output: an argument, a result of the launch, or a constant."""
    found = []
    for origin, i in plan.sources:
        if origin == "argument":
            found.append(i)
        else:
            found.append(_FROM_LAUNCH if origin == "result" else _FIRST_CONSTANT - i)
    return tuple(found)


def _compile_tree(spec: pytrees.PyTreeSpec) -> object:
    """Returns the core's object that makes a pytree of its leaves; None for a leaf."""
    if spec.is_leaf():
        return None
    count = spec.num_leaves
    if pytrees.is_of_builtins(spec):
        return core.Tree(count, pytrees.unflatten(spec, range(count)), None)
    return core.Tree(count, None, partial(pytrees.unflatten, spec))
