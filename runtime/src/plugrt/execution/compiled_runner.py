"""`compile_runner`: runners of the compiled core for calls that need no placement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

from plugrt.compiled_core import core
from plugrt.execution import tree
from plugrt.execution.arguments import Aval, HostAval
from plugrt.execution.loaded_program import LoadedProgram
from plugrt.execution.placer import make_placer, takes_host_value
from plugrt.interface import LoadedExecutable

_LEAF, _LIST, _TUPLE, _DICT = range(4)


def compile_runner(
    program: LoadedProgram,
    out_tree: tree.PyTreeSpec,
    avals: Sequence[Aval],
    slow: Callable[[Sequence[Any]], Any],
) -> Callable[[Sequence[Any]], Any]:
    """Returns a runner in C that takes the calls which it can, and leaves others to ``slow``.

    That is ``slow`` itself where there is no core, or where a call needs more than puts of small
    host values and a launch: an argument is moved, a result is an argument, data are closed over.
    """
    if core is None or program.executable is None:
        return slow
    plan, form = program.plan, _form_of(out_tree)
    if form is None or plan.constants or not set(plan.donated) <= set(plan.kept):
        return slow
    if plan.sources != tuple(("result", i) for i in range(len(program.outputs))):
        return slow
    puts = _compile_puts(program, avals)
    if puts is None:
        return slow
    template = keys = None
    if form == _DICT:
        template = tree.unflatten(out_tree, range(out_tree.num_leaves))
        keys = tuple(sorted(template, key=template.__getitem__))
    return core.Runner(  # type: ignore[no-any-return]
        launcher=_launcher_of(program.executable, len(program.outputs)),
        arity=len(avals),
        kept=plan.kept,
        puts=puts,
        donated=tuple(i for i in plan.donated if not isinstance(avals[i], HostAval)),
        taker=plan.name,
        signatures=program.outputs,
        form=form,
        template=template,
        keys=keys,
        slow=slow,
        explain=partial(_explain, program),
    )


def _launcher_of(executable: LoadedExecutable, results: int) -> Any:
    """Returns what the core launches by: a library's function, or functions of the backend."""
    launcher, steps = executable.launcher, executable.launch_steps
    if type(launcher) is core.Launcher:
        return launcher
    if steps is not None:
        return core.FunctionLauncher(
            launch=steps.launch,
            results=results,
            take=steps.take,
            take_arguments=steps.take_arguments,
            argument_class=steps.argument_class,
            unless=steps.unless,
            explain=steps.explain,
        )
    return core.FunctionLauncher(
        launch=launcher,
        results=results,
        take=None,
        take_arguments=(),
        argument_class=None,
        unless=(),
        explain=None,
    )


def _explain(program: LoadedProgram, values: Sequence[Any], error: Exception) -> NoReturn:
    try:
        raise error  # with a frame of plugrt, by which it is known as its own, as Python's are
    except Exception as raised:  # noqa: BLE001  # always raised again, explained
        program.explain(values, raised)


def _compile_puts(program: LoadedProgram, avals: Sequence[Aval]) -> tuple[Any, ...] | None:
    """Returns what puts each argument that the program takes, None for an array that is there.

    None for a program with arguments that the core does not place.
    """
    launch, kept = program.launch, program.plan.kept
    arrays = [i for i in kept if not isinstance(avals[i], HostAval)]
    if make_placer(avals, program.types, arrays, launch) is not None:
        return None
    hosts = [i for i in kept if isinstance(avals[i], HostAval)]
    if not all(takes_host_value(launch, i) for i in hosts):
        return None
    puts: dict[int, Any] = {}
    for i in hosts:
        shape, dtype, weak = program.types[i]
        if weak and i in program.plan.donated:  # the buffers of numbers are kept for later calls
            return None
        compile_put = getattr(launch.client, "compile_put", None)
        puts[i] = compile_put and compile_put(shape, dtype, launch.devices[0], weak)
    return None if None in puts.values() else tuple(map(puts.get, kept))


def _form_of(spec: tree.PyTreeSpec) -> int | None:
    """Returns the form of a pytree that the core makes, None for any other."""
    if tree.is_leaf_spec(spec):
        return _LEAF
    if not all(tree.is_leaf_spec(child) for child in spec.children()):
        return None
    forms: dict[Any, int] = {list: _LIST, tuple: _TUPLE, dict: _DICT}
    return forms.get(spec.type)
