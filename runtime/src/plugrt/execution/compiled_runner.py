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
    launcher = program.executable.launcher
    if type(launcher) is not core.Launcher:
        return slow
    if make_placer(avals, program.types, plan.kept, program.launch) is not None:
        return slow
    template = keys = None
    if form == _DICT:
        template = tree.unflatten(out_tree, range(out_tree.num_leaves))
        keys = tuple(sorted(template, key=template.__getitem__))
    return core.Runner(  # type: ignore[no-any-return]
        launcher=launcher,
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
