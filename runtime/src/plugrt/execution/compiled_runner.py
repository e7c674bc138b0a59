"""`compile_runner`: runners of the compiled core for calls that need no placement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

from plugrt.compiled_core import core
from plugrt.execution import tree
from plugrt.execution.arguments import Aval
from plugrt.execution.loaded_program import LoadedProgram
from plugrt.execution.placer import make_placer
from plugrt.interface import LoadedExecutable

_LEAF, _LIST, _TUPLE, _DICT = range(4)


def compile_runner(
    program: LoadedProgram,
    out_tree: tree.PyTreeSpec,
    avals: Sequence[Aval],
    slow: Callable[[Sequence[Any]], Any],
) -> Callable[[Sequence[Any]], Any]:
    """Returns a runner in C that takes the calls which it can, and leaves others to ``slow``.

    That is ``slow`` itself where there is no core, or where a call needs more than a launch: an
    argument is put or moved, a result is an argument, data are closed over.
    """
    if core is None or program.executable is None:
        return slow
    plan, form = program.plan, _form_of(out_tree)
    if form is None or plan.constants or not set(plan.donated) <= set(plan.kept):
        return slow
    if plan.sources != tuple(("result", i) for i in range(len(program.outputs))):
        return slow
    if make_placer(avals, program.types, plan.kept, program.launch) is not None:
        return slow
    template = keys = None
    if form == _DICT:
        template = tree.unflatten(out_tree, range(out_tree.num_leaves))
        keys = tuple(sorted(template, key=template.__getitem__))
    return core.Runner(  # type: ignore[no-any-return]
        launcher=_launcher_of(program.executable, len(program.outputs)),
        arity=len(avals),
        kept=plan.kept,
        donated=plan.donated,
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
            argument_class=steps.argument_class,
            unless=steps.unless,
            explain=steps.explain,
        )
    return core.FunctionLauncher(
        launch=launcher, results=results, take=None, argument_class=None, unless=(), explain=None
    )


def _explain(program: LoadedProgram, values: Sequence[Any], error: Exception) -> NoReturn:
    try:
        raise error  # with a frame of plugrt, by which it is known as its own, as Python's are
    except Exception as raised:  # noqa: BLE001  # always raised again, explained
        program.explain(values, raised)


def _form_of(spec: tree.PyTreeSpec) -> int | None:
    """Returns the form of a pytree that the core makes, None for any other."""
    if tree.is_leaf_spec(spec):
        return _LEAF
    if not all(tree.is_leaf_spec(child) for child in spec.children()):
        return None
    forms: dict[Any, int] = {list: _LIST, tuple: _TUPLE, dict: _DICT}
    return forms.get(spec.type)
