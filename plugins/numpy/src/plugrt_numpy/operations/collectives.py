"""Collectives: operations on the values of all devices that run a program in step."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from plugrt.errors import FailedPrecondition
from plugrt.stablehlo.replica_groups import read_replica_groups
from plugrt_numpy.data_types import Array, Function
from plugrt_numpy.devices import Active
from plugrt_numpy.operation import Lowering, Operation
from plugrt_numpy.operations.control_flow import unpack_single
from plugrt_numpy.operations.folding import combiner

_CHANNEL = re.compile(r"handle = (\d+)")


def _channel(op: Operation) -> bool:
    """Whether an operation has a channel, whose id is not 0."""
    found = (
        _CHANNEL.search(str(op.attribute("channel_handle"))) if op.has("channel_handle") else None
    )
    return bool(found and int(found[1]) > 0)


def _rows(op: Operation) -> list[list[int]]:
    if not op.has("replica_groups"):
        return []
    return read_replica_groups(op.attribute("replica_groups"), op.module.symbols)


def _groups(op: Operation) -> list[list[int]]:
    """Returns the groups of an operation whose channel joins replicas and partitions."""
    return op.module.grid.groups(
        _rows(op),
        channel=_channel(op),
        flattened=op.has("use_global_device_ids"),
    )


def _groups_of_either(op: Operation, rows: Sequence[Sequence[int]]) -> list[list[int]]:
    """Returns groups of partitions if there is a channel, else of replicas."""
    grid = op.module.grid
    if _channel(op):
        return grid.partition_groups(rows)
    return grid.groups(rows, channel=False, flattened=False)


def _positions(what: str, groups: Sequence[Sequence[int]], active: Active) -> list[list[int]]:
    """Returns the groups of the active devices, as positions among these.

    Raises `FailedPrecondition` for a group with a device elsewhere in the program, where real
    devices would wait for ever.
    """
    place = {device: i for i, device in enumerate(active)}
    found = []
    for group in groups:
        present = [place[device] for device in group if device in place]
        if present and len(present) != len(group):
            raise FailedPrecondition(
                f"{what} is of the devices {list(group)}, and only "
                f"{[active[i] for i in present]} of these came to it: the others took another "
                "branch or left the loop"
            )
        if present:
            found.append(present)
    return found


def _describe(op: Operation) -> str:
    return f"{op.name} ({op.where})"


def _make_reduction(op: Operation) -> Function:
    """Returns a function that combines the arrays of one operand, with the captured values."""
    combine, places = combiner(op, 1)

    def reduce(arrays: Sequence[Array], captured: Sequence[Any]) -> Array:
        total = np.asarray(arrays[0])
        given = [captured[i] for i in places]
        for array in arrays[1:]:
            total = np.asarray(combine(total, array, *given)[0])
        return total

    return reduce


def _all_reduce(op: Operation) -> Function:
    groups, count, reduce = _groups(op), len(op.ir.results), _make_reduction(op)

    what = _describe(op)

    def run(active: Active, *lists: Any) -> list[list[Array]]:
        results: list[list[Any]] = [list(values) for values in lists[:count]]
        for group in _positions(what, groups, active):
            captured = [values[group[0]] for values in lists[count:]]
            for values, result in zip(lists[:count], results, strict=True):
                total = reduce([values[i] for i in group], captured)
                for i in group:
                    result[i] = total
        return results

    return unpack_single(op, run)


def _reduce_scatter(op: Operation) -> Function:
    groups, reduce, axis = _groups(op), _make_reduction(op), op.integer("scatter_dimension")

    what = _describe(op)

    def run(active: Active, values: Sequence[Array], *captures: Any) -> list[Array]:
        results = list(values)
        for group in _positions(what, groups, active):
            total = reduce([values[i] for i in group], [c[group[0]] for c in captures])
            for i, part in zip(group, np.split(total, len(group), axis), strict=True):
                results[i] = part
        return results

    return run


def _all_gather(op: Operation) -> Function:
    groups, axis = _groups(op), op.integer("all_gather_dim")

    what = _describe(op)

    def run(active: Active, *lists: Any) -> list[list[Array]]:
        results: list[list[Any]] = [list(values) for values in lists]
        for group in _positions(what, groups, active):
            for values, result in zip(lists, results, strict=True):
                whole = np.concatenate([values[i] for i in group], axis)
                for i in group:
                    result[i] = whole
        return results

    return unpack_single(op, run)


def _all_to_all(op: Operation) -> Function:
    groups = _groups_of_either(op, _rows(op))
    split, join = op.integer("split_dimension"), op.integer("concat_dimension")
    parts = op.integer("split_count")

    what = _describe(op)

    def run(active: Active, *lists: Any) -> list[list[Array]]:
        results: list[list[Any]] = [list(values) for values in lists]
        for group in _positions(what, groups, active):
            for values, result in zip(lists, results, strict=True):
                pieces = [np.split(np.asarray(values[i]), parts, split) for i in group]
                for place, i in enumerate(group):
                    result[i] = np.concatenate([own[place] for own in pieces], join)
        return results

    return unpack_single(op, run)


def _collective_permute(op: Operation) -> Function:
    pairs = op.table("source_target_pairs")
    grid, channel = op.module.grid, _channel(op)
    count = grid.partitions if channel else grid.replicas
    others = grid.replicas if channel else grid.partitions
    step, jump = (1, grid.partitions) if channel else (grid.partitions, 1)
    routes = [(a * step + k * jump, b * step + k * jump) for k in range(others) for a, b in pairs]
    outside = [pair for pair in pairs if max(pair) >= count]
    if outside:
        op.refuse(f"the pairs {outside} name devices above {count - 1}")

    what = _describe(op)

    def run(active: Active, values: Sequence[Array]) -> list[Array]:
        place = {device: i for i, device in enumerate(active)}
        results = [np.zeros_like(value) for value in values]
        for source, target in routes:
            if target in place:
                _positions(what, [[source, target]], active)
                results[place[target]] = values[place[source]]
        return results

    return run


def _collective_broadcast(op: Operation) -> Function:
    groups = _groups_of_either(op, _rows(op))

    what = _describe(op)

    def run(active: Active, values: Sequence[Array]) -> list[Array]:
        results = [np.zeros_like(value) for value in values]
        for group in _positions(what, groups, active):
            for i in group:
                results[i] = values[group[0]]
        return results

    return run


def _replica_id(op: Operation) -> Function:
    grid = op.module.grid
    return lambda active: [np.uint32(grid.replica(device)) for device in active]


def _partition_id(op: Operation) -> Function:
    grid = op.module.grid
    return lambda active: [np.uint32(grid.partition(device)) for device in active]


JOINT: dict[str, Lowering] = {
    "stablehlo.all_gather": _all_gather,
    "stablehlo.all_reduce": _all_reduce,
    "stablehlo.all_to_all": _all_to_all,
    "stablehlo.collective_broadcast": _collective_broadcast,
    "stablehlo.collective_permute": _collective_permute,
    "stablehlo.partition_id": _partition_id,
    "stablehlo.reduce_scatter": _reduce_scatter,
    "stablehlo.replica_id": _replica_id,
}
"""Operation name to joint lowering: of the active devices, and lists of their values."""
