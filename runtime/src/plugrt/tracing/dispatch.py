"""From a staged function to a program that runs on given arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from plugrt.config import config
from plugrt.errors import DeletedBuffer, LeakedTracer
from plugrt.execution import tree
from plugrt.execution.array import Array
from plugrt.execution.compile import compile_program
from plugrt.execution.placement import default_device, home, resolve_device
from plugrt.execution.program import LoadedProgram, Plan
from plugrt.execution.sharding import SingleDeviceSharding
from plugrt.execution.signature import Signature, signature_of
from plugrt.execution.transfer import host_array, move, put, scalar_dtype
from plugrt.interface import CompileOptions, Device, DeviceAssignment
from plugrt.plugins import backends
from plugrt.tracing.scalars import python_scalar
from plugrt.tracing.staging import Parameter, Staged
from plugrt.tracing.trace import leak_message
from plugrt.tracing.tracer import Tracer

Runner = Callable[[Sequence[Array]], Any]
"""Takes flat arguments and returns the output pytree."""

_SCALARS = (bool, int, float, complex)
_scalar_arrays: dict[tuple[Any, ...], Array] = {}
_MOST_SCALARS = 512


def as_array(x: Any, name: str, wide: bool = False, fresh: bool = False) -> Array:
    """Returns an argument as an array: host data go to the default device, uncommitted.

    Scalars are put once and shared by many calls, unless ``fresh``; floats keep their 64 bits if
    ``wide`` (see `meets_doubles`). Raises `NotAnArray`, `UnsupportedDtype` or `DeletedBuffer` with
    the argument's ``name``.
    """
    if type(x) is Array:
        if x._shards is None:
            raise DeletedBuffer(f"{name}: {x._obituary()}")
        return x
    if type(x) is np.ndarray:
        return put(host_array(x, name), default_device(), committed=False)
    if type(x) in _SCALARS:
        return _put_scalar(x, wide) if fresh else _scalar_array(x, wide)
    if type(x) is Tracer:
        raise LeakedTracer(leak_message(x))
    if (plain := python_scalar(x)) is not None:
        return as_array(plain, name, wide, fresh)
    return put(host_array(x, name), default_device(), committed=False)


def meets_doubles(leaves: Sequence[Any]) -> bool:
    """Whether there is an array of 64-bit floats, so that Python floats among them need 64, too.

    Elsewhere they have the default width, which devices without such floats can take.
    """
    return any(
        isinstance(x, Array | np.ndarray | np.generic) and x.dtype.char in "dD" for x in leaves
    )


def _put_scalar(x: bool | int | float | complex, wide: bool, device: Device | None = None) -> Array:
    dtype = np.result_type(x, np.float64) if wide and isinstance(x, float | complex) else None
    host = np.asarray(x, dtype or scalar_dtype(x))
    return put(host, device or default_device(), committed=False, weak=True)


def _scalar_array(x: bool | int | float | complex, wide: bool) -> Array:
    # The same few scalars come again and again (x + 1, 0.5 * x): each is put once. 0.0 and -0.0
    # are equal, and a NaN is not itself: their text tells.
    key = (config.token(), type(x), x if x and x == x else repr(x), wide)
    found = _scalar_arrays.get(key)
    if found is None:
        if len(_scalar_arrays) >= _MOST_SCALARS:
            _scalar_arrays.clear()
        found = _scalar_arrays[key] = _put_scalar(x, wide)
    return found


def scalar_beside(x: bool | int | float | np.generic, array: Array) -> Array:
    """Returns a Python or NumPy scalar as an array where ``array`` is, for operators (``x + 1``).

    The short way of `as_array`. Not for a Python -0.0, which a dict takes for 0.0.
    """
    signature = array._signature
    value = x.tobytes() if isinstance(x, np.generic) else x
    key = (config.token(), signature, type(x), value)
    found = _scalar_arrays.get(key)
    if found is None:
        if len(_scalar_arrays) >= _MOST_SCALARS:
            _scalar_arrays.clear()
        device = home(signature.sharding)
        if isinstance(x, np.generic):
            found = put(host_array(x), device, committed=False)
        else:
            found = _put_scalar(x, signature.dtype.char in "dD", device)
        _scalar_arrays[key] = found
    return found


def forget_scalars() -> None:
    """Drops the scalars that were put, which belong to clients that may be closed."""
    _scalar_arrays.clear()


backends.on_clear(forget_scalars)


def parameters_of(
    signatures: Sequence[Signature], names: Sequence[str], donated: frozenset[int] = frozenset()
) -> list[Parameter]:
    """Returns the parameters of a function that is staged for arguments with these signatures."""
    return [
        Parameter(s.tensor_type, s.weak, name, i in donated)
        for i, (s, name) in enumerate(zip(signatures, names, strict=True))
    ]


def load(staged: Staged, signatures: Sequence[Signature], explicit: Device | None) -> LoadedProgram:
    """Compiles a staged function for arguments with these signatures and loads it.

    The device is ``explicit`` or follows from the arguments (`resolve_device`).
    """
    plan = staged.plan
    names = [n or str(i) for i, n in enumerate(plan.argument_names)]
    closed_over = [c._signature for c in plan.constants]
    device, committed = resolve_device(
        [*signatures, *closed_over],
        [*names, *["an array in the closure"] * len(closed_over)],
        explicit,
        plan.name,
    )
    executable = None
    if not plan.is_trivial:
        options = CompileOptions(device_assignment=DeviceAssignment(((device.id,),)))
        inputs = [staged.parameters[i].type for i in plan.kept]
        executable = compile_program(device.client, staged.program(device.client), options, inputs)
    here = SingleDeviceSharding(device)
    results = [signature_of(t.shape, t.dtype, here, committed) for t in staged.result_types]
    if any(s.sharding is not here for s in closed_over):
        plan = _with_constants_on(plan, device)
    move_to = None
    if not plan.is_trivial or explicit is not None:
        # What is passed on counts as a result: it is where the others are, and committed as they.
        passed_on = {i for kind, i in plan.sources if kind == "argument"}
        away = [
            i
            for i, s in enumerate(signatures)
            if (s.sharding is not here and (i in plan.kept or i in passed_on))
            or (committed and not s.committed and i in passed_on)
        ]
        move_to = _mover(away, device, committed) if away else None
    return LoadedProgram(plan, executable, results, move_to)


def _with_constants_on(plan: Plan, device: Device) -> Plan:
    return replace(plan, constants=tuple(move(c, device, c.committed) for c in plan.constants))


def _mover(
    away: list[int], device: Device, committed: bool
) -> Callable[[Sequence[Array]], list[Array]]:
    def prepare(arguments: Sequence[Array]) -> list[Array]:
        placed = list(arguments)
        for i in away:
            placed[i] = move(placed[i], device, committed or placed[i].committed)
        return placed

    return prepare


def finisher(spec: tree.PyTreeSpec, run: Runner) -> Runner:
    """Returns a runner that gives the output pytree instead of a flat list."""
    if tree.is_leaf_spec(spec):
        program = getattr(run, "__self__", None)
        if isinstance(program, LoadedProgram) and run == program.run_plain:
            return program.single_runner()
        return lambda arguments: run(arguments)[0]
    if spec.type is tuple and all(tree.is_leaf_spec(s) for s in spec.children()):
        return lambda arguments: tuple(run(arguments))
    return lambda arguments: tree.unflatten(spec, run(arguments))
