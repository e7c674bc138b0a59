"""Replica groups of collectives, from axis names and ``axis_index_groups``.

The axes that `pmap` has bound, outermost first, number the replicas in row-major order; within
`shard_map` those of the mesh number the partitions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from plugrt.errors import ArgumentError, ArgumentTypeError, UnboundAxis
from plugrt.stablehlo.bindings import ir
from plugrt.tracing.trace import Trace, current_trace

AxisName: TypeAlias = str | Sequence[str]
"""The name of a mapped axis, or several for their product."""

Groups: TypeAlias = Sequence[Sequence[int]] | None
"""Indices along the axis that work together, each index in one group; None: all together."""


def replica_groups(axis_name: AxisName, axis_index_groups: Groups = None) -> list[list[int]]:
    """Returns the replica ids that work together, as rows in the order of the axis.

    Raises `UnboundAxis` if an axis is not bound.
    """
    trace, names = _bound_axes(axis_name)
    numbered = trace.numbered_axes
    bound, sizes = list(numbered), list(numbered.values())
    chosen = [bound.index(name) for name in names]
    others = [i for i in range(len(bound)) if i not in chosen]
    ids = np.arange(math.prod(sizes)).reshape(sizes).transpose([*others, *chosen])
    rows: list[list[int]] = ids.reshape(-1, math.prod(sizes[i] for i in chosen)).tolist()
    if axis_index_groups is None:
        return rows
    _check_groups(axis_index_groups, len(rows[0]))
    return [[row[i] for i in group] for row in rows for group in axis_index_groups]


def group_size(axis_name: AxisName, axis_index_groups: Groups = None) -> int:
    """Returns how many replicas work together."""
    trace, names = _bound_axes(axis_name)
    size = math.prod(trace.axes[name] for name in names)
    if axis_index_groups is None:
        return size
    _check_groups(axis_index_groups, size)
    return len(axis_index_groups[0])


def axis_positions(axis_name: AxisName) -> list[tuple[int, int]]:
    """Returns for each axis how many replica ids apart its neighbours are, and its size."""
    trace, names = _bound_axes(axis_name)
    bound, sizes = list(trace.numbered_axes), list(trace.numbered_axes.values())
    return [(math.prod(sizes[bound.index(name) + 1 :]), trace.axes[name]) for name in names]


def _bound_axes(axis_name: AxisName) -> tuple[Trace, tuple[str, ...]]:
    names = tuple(axis_name) if isinstance(axis_name, tuple | list) else (axis_name,)
    try:
        hash(names)
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
    return trace, names


def _check_groups(groups: Sequence[Sequence[int]], size: int) -> None:
    lengths = {len(group) for group in groups}
    if sorted(i for group in groups for i in group) != list(range(size)) or len(lengths) != 1:
        raise ArgumentError(
            f"axis_index_groups must hold each index from 0 to {size - 1} once, in groups of one "
            f"length; got {[list(g) for g in groups]}"
        )


def channel_attributes(trace: Trace) -> dict[str, ir.Attribute]:
    """Returns what makes a collective one of partitions: within `shard_map`, else nothing."""
    if trace.mesh is None:
        return {}
    trace.channels += 1
    text = f"#stablehlo.channel_handle<handle = {trace.channels}, type = 1>"
    return {"channel_handle": ir.Attribute.parse(text, trace.context)}
