"""`map_within`: pmap while another function is traced: one more axis of that function's replicas.

Each replica takes its slice of the arguments, and the results are gathered from all of them, as
in JAX 0.4.20 (``pxla._pmap_lowering``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from plugrt.errors import Unimplemented
from plugrt.execution.launches.replica_launch import InnerPmap
from plugrt.execution.trees import tree
from plugrt.interface import TensorType
from plugrt.lax.parallel.all_reduce import axis_index
from plugrt.lax.parallel.exchanges import all_gather
from plugrt.tracing.captures import as_tracer
from plugrt.tracing.emit import constant, hlo, reshape, with_weakness
from plugrt.tracing.trace import Trace
from plugrt.tracing.tracer import Tracer
from plugrt.transforms.pmap_axes import Axis, AxisPrefix, replica_shape, whole_output
from plugrt.transforms.pmap_launch import refuse_claim


def map_within(
    trace: Trace,
    function: Callable[..., Any],
    operands: Sequence[Tracer],
    axes: Sequence[Axis],
    out_axes: AxisPrefix,
    inner: InnerPmap,
    axis_name: Any,
) -> Any:
    """Returns the results of a function of slices, mapped over a new axis of replicas.

    ``axes`` says for each operand where it is sliced, None where replicas take it whole. A result
    whose axis in ``out_axes`` is None is each replica's own.
    """
    _check_surroundings(trace, inner)
    claims = len(trace.claims)
    with trace.replicated(axis_name, inner) as key:
        parts = [_slice(x, axis, key) for x, axis in zip(operands, axes, strict=True)]
        returned = function(*parts)
        for claim in [*trace.claims][claims:]:
            refuse_claim(claim.source(), inner.what)
        leaves, structure = tree.flatten(returned)
        ats = out_axes.broadcast(returned, f"the results of {inner.what}")
        gathered = [
            _gather(as_tracer(x, f"result {i} of {inner.what}"), at, inner, i, key)
            for i, (x, at) in enumerate(zip(leaves, ats, strict=True))
        ]
    return tree.unflatten(structure, gathered)


def _check_surroundings(trace: Trace, inner: InnerPmap) -> None:
    if trace.mesh is not None:
        raise Unimplemented(
            f"{inner.what} within shard_map over {list(trace.axes)}: shard_map has the devices of "
            "its mesh already. Map over another axis of the mesh instead"
        )
    if trace.axes and (inner.devices is not None or inner.backend is not None):
        asked = "backend" if inner.devices is None else "devices"
        raise Unimplemented(
            f"{inner.what} with {asked}= within pmap of {trace.name!r}: the outermost pmap chooses "
            f"the devices of all within it; give {asked}= to that"
        )


def _slice(x: Tracer, axis: Axis, key: Any) -> Tracer:
    """Returns the slice of an operand that a replica has."""
    if axis is None:
        return x
    index = axis_index((key,))
    start: list[Any] = [index if i == axis else constant(0, index.dtype) for i in range(x.ndim)]
    sizes = [1 if i == axis else n for i, n in enumerate(x.shape)]
    part = hlo.dynamic_slice(x.value, [s.value for s in start], sizes, loc=x.trace.location())
    sliced = Tracer(part, x.trace)
    return with_weakness(reshape(sliced, replica_shape(axis, x.shape)), x.weak)


def _gather(x: Tracer, axis: Axis, inner: InnerPmap, i: int, key: Any) -> Tracer:
    part = TensorType(x.shape, x.dtype)
    at, _ = whole_output(axis, part, inner.size, f"result {i} of {inner.what}")
    return x if at is None else all_gather(x, (key,), axis=at)
