"""Eager control flow: the whole loop or conditional is traced and launched as one program.

Programs are cached by the functions that they contain, weakly: they are freed with one of the
functions. A lambda written in the call is a new function each time, and is compiled each time; name
it, or put the loop under ``jit``. Traces are cached in the same way if JAX caches them: for
`while_loop`, `fori_loop`, `scan`, `cond`, `switch`, `reduce`, `reduce_window` and `scatter_apply`.
Their functions, as under ``jit``, read captured values once. All others are traced at each call,
and compiled again if the program differs.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from plugrt.base.weak_keys import WeakKeys
from plugrt.errors import ArgumentTypeError, ConcretizationError, NotAnArray
from plugrt.execution.arrays.arguments import TracedType, read_arguments
from plugrt.execution.arrays.array_making import with_own_arrays
from plugrt.execution.arrays.aval import Aval
from plugrt.execution.launches.float_checks import Rerun, put_host_arrays
from plugrt.execution.launches.pipeline import Pipeline
from plugrt.execution.launches.programs import resolve_launch
from plugrt.execution.placement.placement import Launch
from plugrt.execution.shardings.replica_sharding import current_replicas
from plugrt.execution.trees import pytrees
from plugrt.lax.parallel.replica_calls import replica_axes
from plugrt.settings.declarations import config
from plugrt.tracing.captures import as_tracer
from plugrt.tracing.operation import ARRAYS
from plugrt.tracing.staged import Staged
from plugrt.tracing.trace import current_trace
from plugrt.tracing.trace_function import make_parameters, stage
from plugrt.tracing.tracer import with_own_tracers

InPython = Callable[..., Any]
"""Gets the functions and, by name, the operands; must not refer to the functions itself."""

Place = Callable[[Staged, Sequence[Aval]], Launch]

_place_with_captured: Place = functools.partial(resolve_launch, captured_count=True)

# Process-wide: a cache by the user's functions, which have no owner; freed with them.
_pipelines: dict[tuple[str, int], WeakKeys[object, object]] = {}
"""The pipelines of eager control flow, by title and functions (weakly)."""


def _find_pipeline(title: str, functions: Sequence[Callable[..., object]]) -> Pipeline[Staged]:
    """Returns the pipeline that calls with these functions share.

    Returns a new one each time if one of them cannot be referenced weakly.
    """
    level: Any = _pipelines.setdefault((title, len(functions)), WeakKeys())
    last = len(functions) - 1
    try:
        for i, function in enumerate(functions):
            inner = level.find(function)
            if inner is None:
                inner = level.keep(function, Pipeline() if i == last else WeakKeys())
            level = inner
    except TypeError:
        return Pipeline()
    found: Pipeline[Staged] = level
    return found


def launch(
    title: str,
    functions: Sequence[Callable[..., object]],
    static: Hashable,
    operands: dict[str, Any],
    body: Callable[..., object],
    in_python: InPython | None = None,
    *,
    reads_once: bool,
    place: Place = _place_with_captured,
) -> Any:
    """Returns ``body(**operands)``, where the leaves of ``operands`` arrive as tracers.

    Within a trace the body runs in place. Otherwise it is staged, compiled and launched as one
    program, kept for the same ``functions``, ``static`` values and argument avals. With
    ``reads_once`` the trace is kept, too: captured values keep their first values. ``in_python``
    runs it operation by operation instead: under ``disable_jit``, and for a debug check that
    searches the faulty operation of a launch. ``place`` determines the launch from the operands and
    the captured arrays.
    """
    for function in functions:
        if not callable(function):
            raise ArgumentTypeError(f"{title} takes functions; got {function!r:.60}")
    if current_trace() is not None:
        given = {name: _trace_leaves(title, name, x) for name, x in operands.items()}
        return with_own_tracers(body(**given), [*given.values()])
    here = current_replicas()
    if in_python is not None and config.disable_jit:
        try:
            return in_python(functions, **with_own_arrays(operands))
        except ConcretizationError:
            if here is None:
                raise
            # The branch differs between replicas: it runs as one program.
    leaves, spec = pytrees.flatten(tuple(operands.values()))
    parts = zip(operands, spec.children(), strict=True)
    names = [f"{name}{path}" for name, part in parts for path in pytrees.paths(part)]
    values, avals = read_arguments(leaves, lambda i: f"argument {names[i]} of {title}")

    def trace(types: Sequence[TracedType]) -> Staged:
        return stage(
            lambda *tracers: body(
                **dict(zip(operands, pytrees.unflatten(spec, tracers), strict=True))
            ),
            make_parameters(types, names),
            name=title,
            axes=None if here is None else replica_axes(here),
        )

    pipeline = _find_pipeline(title, functions)
    rerun = in_python and _make_rerun(in_python, functions, tuple(operands), spec)
    if reads_once:
        head = (static, spec, here)
        key = (config.token(), head, *avals)
        run = pipeline.get_runner(key, head, avals, trace, place, title, rerun)
    else:
        run = pipeline.trace_anew(avals, trace, place, title, rerun)
    return run(values)


def _make_rerun(
    in_python: InPython,
    functions: Sequence[Callable[..., object]],
    names: Sequence[str],
    spec: pytrees.PyTreeSpec,
) -> Rerun:
    """Returns a function that repeats a call operation by operation; it keeps no function alive."""
    held = [_refer(function) for function in functions]

    def rerun(values: Sequence[object]) -> None:
        alive = [function() for function in held]
        if None not in alive:
            operands = pytrees.unflatten(spec, put_host_arrays(values))
            with config.override(disable_jit=True):
                in_python(alive, **dict(zip(names, operands, strict=True)))

    return rerun


def _refer(function: object) -> Callable[[], object]:
    """Returns a weak reference to a function, or a strong one if its type allows no weak ones."""
    try:
        return weakref.ref(function)
    except TypeError:  # no cache keeps it alive: `_find_pipeline` returns a new pipeline then
        return lambda: function


def require_array(title: str, name: str, x: object) -> None:
    """Raises `NotAnArray` unless ``x`` is one array or scalar: no container, text or None."""
    if not isinstance(x, ARRAYS):
        raise NotAnArray(
            f"{name} of {title} is {x!r:.60} of type {type(x).__qualname__}; it takes an array "
            "or a scalar"
        )


def _trace_leaves(title: str, name: str, value: object) -> object:
    leaves, spec = pytrees.flatten(value)
    return pytrees.unflatten(
        spec, [as_tracer(leaf, f"argument {name!r} of {title}") for leaf in leaves]
    )
