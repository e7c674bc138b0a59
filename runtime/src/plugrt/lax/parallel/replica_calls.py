"""Runs collectives if pmap runs operation by operation: each is a program over its replicas."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from plugrt.execution.arrays.arguments import TracedType, read_arguments
from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.aval import Aval
from plugrt.execution.launches.flat_calls import static_key
from plugrt.execution.launches.pipeline import Pipeline
from plugrt.execution.launches.programs import resolve_launch
from plugrt.execution.placement.placement import Launch
from plugrt.execution.shardings.replica_sharding import ReplicaSharding, current_replicas
from plugrt.execution.trees import pytrees
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.settings.declarations import config
from plugrt.tracing.mapped_axes import AxisKey, bind_axis
from plugrt.tracing.staged import Staged
from plugrt.tracing.trace import current_trace
from plugrt.tracing.trace_function import make_parameters, stage
from plugrt.tracing.tracer import Tracer

P = ParamSpec("P")
R = TypeVar("R")


def collective(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: makes a function that adds collectives to a trace callable without one.

    If pmap runs operation by operation, each call is a program over the replicas.
    """
    pipeline: Pipeline[Staged] = Pipeline()

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if current_trace() is None and (here := current_replicas()) is not None:
            return call_on_replicas(function, here, args, kwargs, pipeline)
        return function(*args, **kwargs)

    return with_argument_errors(call)


def replica_axes(here: ReplicaSharding) -> dict[AxisKey, int]:
    """Returns the mapped axes of replicas that run operation by operation."""
    return bind_axis({}, here.name, here.size)


def call_on_replicas(
    function: Callable[..., R],
    here: ReplicaSharding,
    args: Sequence[object],
    kwargs: dict[str, object],
    pipeline: Pipeline[Staged],
) -> R:
    """Returns the results of a function that is traced with the replicas' axis and run on them.

    If neither arguments nor results are arrays, the results are returned unchanged.
    """
    leaves, spec = pytrees.flatten((tuple(args), kwargs))
    arrays = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Array | np.ndarray)]
    found: list[R] = []
    title = getattr(function, "__name__", "function")
    run: Callable[[Sequence[Any]], R]

    def call(*operands: object) -> Any:
        given = [*leaves]
        for i, operand in zip(arrays, operands, strict=True):
            given[i] = operand
        given_args, given_kwargs = pytrees.unflatten(spec, given)
        found.append(function(*given_args, **given_kwargs))
        return found[-1]

    def trace(types: Sequence[TracedType]) -> Staged:
        names = [f"x{i}" for i in range(len(types))]
        return stage(call, make_parameters(types, names), name=title, axes=replica_axes(here))

    if not arrays:
        staged = trace(())
        if not any(isinstance(leaf, Tracer) for leaf in pytrees.flatten(found[-1])[0]):
            return found[-1]
        once = object()
        run = pipeline.get_runner((config.token(), once), once, (), lambda _: staged, _place, title)
        return run(())
    others = [static_key(leaf) for i, leaf in enumerate(leaves) if i not in arrays]
    values, avals = read_arguments([leaves[i] for i in arrays], lambda _: "an argument")
    head = (spec, *others, here)
    key = (config.token(), head, *avals)
    run = pipeline.get_runner(key, head, avals, trace, _place, title)
    return run(values)


def _place(staged: Staged, avals: Sequence[Aval]) -> Launch:
    return resolve_launch(staged, avals)
