"""Replica groups of collectives, from axis names and ``axis_index_groups``.

The axes that `pmap` has bound, outermost first, number the replicas in row-major order; within
`shard_map` the axes of the mesh number the partitions.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from plugrt.errors import ArgumentError, ArgumentTypeError, UnboundAxis, Unimplemented
from plugrt.execution.shardings.manual_types import NO_MAT, ManualAxisType
from plugrt.stablehlo.bindings import ir
from plugrt.stablehlo.replica_groups import mark_replicas
from plugrt.tracing.emit import with_manual_type, wrap_one
from plugrt.tracing.trace import Trace, current_trace
from plugrt.tracing.tracer import Tracer

AxisName: TypeAlias = Hashable | Sequence[Hashable]
"""The name of a mapped axis, or several for their product."""

Groups: TypeAlias = Sequence[Sequence[int]] | None
"""Groups of indices along the axis, each index in one group; None: one group of all."""


def replica_groups(axis_name: AxisName, axis_index_groups: Groups = None) -> npt.NDArray[Any]:
    """Returns the groups of replica ids, as rows in the order of the axis.

    If groups differ in length, -1 fills the shorter ones. Raises `UnboundAxis` if an axis is not
    bound.
    """
    trace, names = _bound_axes(axis_name)
    numbered = trace.numbered_axes
    bound, sizes = list(numbered), list(numbered.values())
    chosen = [bound.index(name) for name in names]
    others = [i for i in range(len(bound)) if i not in chosen]
    ids = np.arange(math.prod(sizes), dtype=np.int64).reshape(sizes).transpose([*others, *chosen])
    rows = ids.reshape(-1, math.prod(sizes[i] for i in chosen))
    if axis_index_groups is None:
        return rows
    longest = max(check_groups(axis_index_groups, rows.shape[1]))
    table = np.full((len(rows), len(axis_index_groups), longest), -1, np.int64)
    for i, group in enumerate(axis_index_groups):
        table[:, i, : len(group)] = rows[:, list(group)]
    return table.reshape(-1, longest)


def groups_attribute(axis_name: AxisName, groups: Groups) -> ir.Attribute:
    """Returns the replica groups of an axis in the form for StableHLO's collectives."""
    return ir.DenseIntElementsAttr.get(np.ascontiguousarray(replica_groups(axis_name, groups)))


def group_size(axis_name: AxisName, axis_index_groups: Groups = None) -> int:
    """Returns the size of a group; raises `ArgumentError` for groups of different lengths."""
    trace, names = _bound_axes(axis_name)
    size = math.prod(trace.axes[name] for name in names)
    if axis_index_groups is None:
        return size
    lengths = check_groups(axis_index_groups, size)
    if len(lengths) > 1:
        raise ArgumentError(
            "axis_index_groups are of one length, but for psum, pmean, pmax and pmin; got "
            f"{[list(g) for g in axis_index_groups]}"
        )
    return lengths.pop()


def axis_positions(axis_name: AxisName) -> list[tuple[int, int]]:
    """Returns for each axis the difference of neighbours' replica ids, and its size."""
    trace, names = _bound_axes(axis_name)
    bound, sizes = list(trace.numbered_axes), list(trace.numbered_axes.values())
    return [(math.prod(sizes[bound.index(name) + 1 :]), trace.axes[name]) for name in names]


def axis_places(axis_name: AxisName) -> tuple[int, ...]:
    """Returns the number of axes around each axis, which distinguishes axes of the same name."""
    trace, names = _bound_axes(axis_name)
    return tuple(map([*trace.numbered_axes].index, names))


def _bound_axes(axis_name: AxisName) -> tuple[Trace, tuple[object, ...]]:
    names = names_of(axis_name)
    try:
        repeated = len(set(names)) < len(names)
    except TypeError as error:
        raise ArgumentTypeError(
            f"the axis of a collective is a name, or several names; got {axis_name!r:.60}"
        ) from error
    trace = current_trace()
    if trace is None:
        raise UnboundAxis(
            f"unbound axis name: {axis_name!r}; collectives are called within a function that "
            "pmap or shard_map maps over an axis of that name"
        )
    for name in names:
        trace.axis_size(name)
    if repeated:
        raise ArgumentError(f"a collective is over each axis once; got {axis_name!r}")
    return trace, names


def check_groups(groups: Sequence[Sequence[int]], size: int) -> set[int]:
    """Returns the lengths of groups; raises `ArgumentError` unless each index is in one of them.

    Raises `ArgumentTypeError` for an object that is no sequence of sequences of whole numbers.
    """
    for group in _iterate(groups, groups):
        for i in _iterate(group, groups):
            if isinstance(i, bool) or not hasattr(i, "__index__"):
                raise _make_groups_error(groups)
    if sorted(i for group in groups for i in group) != list(range(size)):
        raise ArgumentError(
            f"axis_index_groups must hold each index from 0 to {size - 1} once; got "
            f"{[list(g) for g in groups]}"
        )
    return {len(group) for group in groups}


def _iterate(part: object, groups: object) -> Iterable[object]:
    if not isinstance(part, Iterable):
        raise _make_groups_error(groups)
    return part


def _make_groups_error(groups: object) -> ArgumentTypeError:
    return ArgumentTypeError(
        "axis_index_groups are lists of indices, whole numbers, such as [[0, 1], [2, 3]]; got "
        f"{groups!r:.100}"
    )


def channel_attributes(trace: Trace) -> dict[str, ir.Attribute]:
    """Returns the channel attribute that makes a collective one of partitions, in `shard_map`."""
    if trace.mesh is None:
        return {}
    trace.channels += 1
    text = f"#stablehlo.channel_handle<handle = {trace.channels}, type = 1>"
    return {"channel_handle": ir.Attribute.parse(text, trace.context)}


def global_ids(trace: Trace) -> dict[str, ir.Attribute]:
    """Returns the attribute that makes a collective's groups device ids, in `shard_map`."""
    channel = channel_attributes(trace)
    return {**channel, "use_global_device_ids": ir.UnitAttr.get()} if channel else {}


def names_of(axis_name: AxisName) -> tuple[Any, ...]:
    """Returns the names of the axes of a collective."""
    return tuple(axis_name) if isinstance(axis_name, tuple | list) else (axis_name,)


def is_term(function: str, x: Tracer, axis_name: AxisName, groups: Groups) -> bool:
    """Whether a value to be summed over axes is unreduced along all of them; False for none.

    Raises as `state_along`, and `Unimplemented` for unreduced values with groups.
    """
    if x.mat.unreduced.isdisjoint(names_of(axis_name)):
        return False
    state_along(function, x, axis_name)
    if groups is not None:
        raise Unimplemented(
            f"{function} with axis_index_groups of an unreduced value, of type {x.mat}, is not "
            "implemented: leave axis_index_groups out"
        )
    return True


def state_along(function: str, x: Tracer, axis_name: AxisName) -> str:
    """Returns the `ManualAxisType.state` of a value along axes.

    Raises `ArgumentError` if it differs between them.
    """
    states = {x.mat.state(name) for name in names_of(axis_name)} or {"invarying"}
    if len(states) > 1:
        raise ArgumentError(
            f"{function} over {axis_name!r} takes a value in one state along all of them; it is "
            f"{sorted(states)}, of type {x.mat}"
        )
    return states.pop()


def as_varying(function: str, x: Tracer, axis_name: AxisName) -> Tracer:
    """Returns a value as varying along axes, as collectives require within shard_map.

    Raises `ArgumentError` if it is unreduced or reduced along one.
    """
    more = [name for name in names_of(axis_name) if name not in x.mat.varying]
    for state in ("unreduced", "reduced"):
        if found := getattr(x.mat, state).intersection(more):
            raise ArgumentError(
                f"{function} over {axis_name!r} takes no value that is {state} over "
                f"{sorted(found)}, of type {x.mat}"
            )
    return with_manual_type(x, x.mat.moved(more, "varying")) if more else x


def wrap_collective(trace: Trace, made: Any, mat: ManualAxisType = NO_MAT) -> Tracer:
    """Returns the result of an operation that refers to devices by number.

    Marks it if these are replicas, whose numbers are final only once the whole program is traced.
    ``mat`` is its type along the axes that shard_map has bound.
    """
    if trace.mesh is None:
        operation = made.owner if isinstance(made, ir.Value) else made.operation
        mark_replicas(operation, math.prod(trace.axes.values()))
        trace.numbers_replicas = True
    wrapped = wrap_one(made)
    if trace.types is not None:
        trace.types.set_mat(wrapped.value, mat)
    return wrapped
