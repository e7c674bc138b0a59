"""Eager calls of functions that take functions: each is staged whole and launched once.

Programs are kept for the functions that they were made of, weakly: they go when one of the
functions does. A lambda written in the call is a new function each time, and is compiled each
time; name it, or put the loop under ``jit``. As under ``jit``, what the function reads from outside
is read once.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from plugrt.config import config
from plugrt.errors import ArgumentTypeError, NotAnArray
from plugrt.execution import tree
from plugrt.execution.array import Array
from plugrt.execution.caches import remember
from plugrt.execution.program import check_floats
from plugrt.tracing.dispatch import Runner, as_array, finisher, load, parameters_of
from plugrt.tracing.emit import as_tracer
from plugrt.tracing.operation import ARRAYS
from plugrt.tracing.staging import stage
from plugrt.tracing.trace import current_trace


class Launches:
    """The programs of eager control flow, by title and functions (weakly), then by arguments."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int], weakref.WeakKeyDictionary[Any, Any]] = {}
        remember(self)

    def clear(self) -> None:
        """Forgets the compiled programs."""
        self._kept.clear()

    def of(self, title: str, functions: Sequence[Callable[..., Any]]) -> dict[Any, Runner]:
        """Returns the programs of these functions, a fresh dict if one cannot be held weakly."""
        level: Any = self._kept.setdefault((title, len(functions)), weakref.WeakKeyDictionary())
        last = len(functions) - 1
        try:
            for i, function in enumerate(functions):
                inner = level.get(function)
                if inner is None:
                    inner = level[function] = {} if i == last else weakref.WeakKeyDictionary()
                level = inner
        except TypeError:
            return {}
        found: dict[Any, Runner] = level
        return found


_launches = Launches()
_MOST = 1024


def launch(
    title: str,
    functions: Sequence[Callable[..., Any]],
    static: Hashable,
    operands: dict[str, Any],
    body: Callable[..., Any],
) -> Any:
    """Returns ``body(**operands)``, where the leaves of ``operands`` arrive as tracers.

    Within a trace the body runs in place. Otherwise it is staged, compiled and launched as one
    program, kept for the same ``functions``, ``static`` values and argument signatures.
    """
    for function in functions:
        if not callable(function):
            raise ArgumentTypeError(f"{title} takes functions; got {function!r:.60}")
    if current_trace() is not None:
        return body(**{name: _traced(title, name, x) for name, x in operands.items()})
    names, leaves = [], []
    for name, value in operands.items():
        for path, leaf in tree.flatten_with_paths(value):
            names.append(f"{name}{path}")
            leaves.append(as_array(leaf, f"argument {name}{path} of {title}"))
    spec = tree.flatten(tuple(operands.values()))[1]
    signatures = [a._signature for a in leaves]
    key = (config.token(), static, spec, *signatures)
    programs = _launches.of(title, functions)
    run = programs.get(key)
    if run is None:
        staged = stage(
            lambda *tracers: body(
                **dict(zip(operands, tree.unflatten(spec, tracers), strict=True))
            ),
            parameters_of(signatures, names),
            name=title,
        )
        loaded = load(staged, signatures, None).runner(len(leaves))
        if config.debug_nans or config.debug_infs:
            loaded = _checked(loaded, title)
        run = finisher(staged.out_tree, loaded)
        if len(programs) >= _MOST:
            programs.clear()
        programs[key] = run
    return run(leaves)


def require_array(title: str, name: str, x: Any) -> None:
    """Raises `NotAnArray` unless ``x`` is one array or scalar: no container, text or None."""
    if not isinstance(x, ARRAYS):
        raise NotAnArray(
            f"{name} of {title} is {x!r:.60} of type {type(x).__qualname__}; it takes an array "
            "or a scalar"
        )


def _traced(title: str, name: str, value: Any) -> Any:
    leaves, spec = tree.flatten(value)
    return tree.unflatten(
        spec, [as_tracer(leaf, f"argument {name!r} of {title}") for leaf in leaves]
    )


def _checked(run: Runner, title: str) -> Runner:
    nans, infs = bool(config.debug_nans), bool(config.debug_infs)

    def checked(arguments: Sequence[Array]) -> Any:
        outputs = run(arguments)
        check_floats(outputs, title, nans=nans, infs=infs)
        return outputs

    return checked
