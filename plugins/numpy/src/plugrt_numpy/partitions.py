"""Programs over partitions: whole arrays are assembled, computed with, and divided again.

A partitioned program is written for whole arrays, and shardings state the part of its arguments and
results that each partition holds. An ``sdy.manual_computation`` is written for the parts: in it the
partitions run in step, like replicas.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from plugrt.interface import TensorType
from plugrt.stablehlo.attributes import symbol_of, text_of
from plugrt.stablehlo.bindings import ir
from plugrt.stablehlo.shardings import (
    WHOLE,
    Slices,
    TensorSharding,
    read_gspmd,
    read_manual_axes,
    read_peers,
    read_shardy,
    read_shardy_list,
)
from plugrt.stablehlo.types import parameter_type
from plugrt_numpy.data_types import Array, Function
from plugrt_numpy.devices import Active
from plugrt_numpy.operation import Lowering, Operation
from plugrt_numpy.operations.control_flow import unpack_single

MANUAL_COMPUTATION = "sdy.manual_computation"


class Part(NamedTuple):
    """The part of an array that a partition holds, or one of the terms of that part's sum."""

    slices: Slices
    term: int = 0


Parts = list[Part]
"""The parts of an array that each partition holds."""


def read_symbols(module: ir.Module) -> dict[str, Any]:
    """Returns the functions and meshes of a module by name."""
    named = ((symbol_of(op), op.operation) for op in module.body.operations)
    return {name: operation for name, operation in named if name is not None}


class Signature:
    """The types of ``main``'s parameters and results, and the parts that partitions hold."""

    def __init__(self, module: ir.Module, partitions: int) -> None:
        symbols = read_symbols(module)
        main = symbols["main"]
        kind = main.attributes["function_type"].value
        self.inputs = [parameter_type(t) for t in kind.inputs]
        self.results = [parameter_type(t) for t in kind.results]
        self.input_parts = _parts(main, "arg_attrs", self.inputs, symbols, partitions)
        self.result_parts = _parts(main, "res_attrs", self.results, symbols, partitions)

    @property
    def local_types(self) -> tuple[list[TensorType], list[TensorType]]:
        """The types of one partition's parameters and results."""
        return (
            [_local(t, parts) for t, parts in zip(self.inputs, self.input_parts, strict=True)],
            [_local(t, parts) for t, parts in zip(self.results, self.result_parts, strict=True)],
        )


def _local(kind: TensorType, parts: Parts) -> TensorType:
    return TensorType(tuple(s.stop - s.start for s in parts[0].slices), kind.dtype)


def _parts(
    main: ir.Operation,
    key: str,
    types: Sequence[TensorType],
    symbols: dict[str, Any],
    partitions: int,
) -> list[Parts]:
    given = list(main.attributes[key]) if key in main.attributes else [None] * len(types)
    return [
        _parts_of(_sharding(attributes, symbols, partitions), kind, partitions)
        for attributes, kind in zip(given, types, strict=True)
    ]


def _parts_of(
    sharding: TensorSharding,
    kind: TensorType,
    partitions: int,
    axes: Collection[str] | None = None,
) -> Parts:
    slices = sharding.slices(kind.shape, partitions, axes)
    return list(map(Part, slices, sharding.terms(partitions, axes)))


def _sharding(attributes: Any, symbols: dict[str, Any], partitions: int) -> TensorSharding:
    """Returns a value's sharding; a value without one is replicated."""
    if attributes is not None and "sdy.sharding" in attributes:
        return read_shardy(attributes["sdy.sharding"], symbols, unreduced=True)
    if attributes is not None and "mhlo.sharding" in attributes:
        return read_gspmd(text_of(attributes["mhlo.sharding"]), partitions)
    return WHOLE


def as_handle(value: Any) -> Array:
    """Returns a value of a program as an array; a token, which is None, becomes an empty one."""
    return np.zeros(0, np.bool_) if value is None else np.asarray(value)


def assemble(shards: Sequence[Array], parts: Parts, kind: TensorType) -> Array:
    """Returns the whole array from the parts of partitions; a token from one of them."""
    summed = any(part.term for part in parts)
    if kind.is_token or (np.shape(shards[0]) == kind.shape and not summed):
        return shards[0]
    if summed:
        return _sum_terms(shards, parts, kind)
    whole = np.empty(kind.shape, kind.dtype)
    # the first copy of a part counts
    for shard, part in reversed([*zip(shards, parts, strict=True)]):
        whole[part.slices] = shard
    return whole


def _sum_terms(shards: Sequence[Array], parts: Parts, kind: TensorType) -> Array:
    whole, seen = np.zeros(kind.shape, kind.dtype), set()
    for shard, part in zip(shards, parts, strict=True):
        key = (part.term, *((s.start, s.stop) for s in part.slices))
        if key not in seen:  # a copy of a term counts once
            seen.add(key)
            whole[part.slices] += shard
    return whole


def divide(whole: Array, parts: Parts) -> list[Array]:
    """Returns each partition's part, as a view; of several terms, all but the first are 0."""
    whole = as_handle(whole)
    found = []
    for part in parts:
        index: tuple[Any, ...] = (*part.slices, ...)  # with ..., an array does not become a scalar
        found.append(np.zeros_like(whole[index]) if part.term else whole[index])
    return found


def read_manual(
    operation: ir.Operation, meshes: dict[str, Any], partitions: int
) -> tuple[list[Parts], list[Parts]]:
    """Returns the parts of its operands and results that a manual computation is written for."""
    axes = read_manual_axes(operation.attributes["manual_axes"])
    inputs, results = (
        [
            _parts_of(sharding, parameter_type(value.type), partitions, axes)
            for sharding, value in zip(
                read_shardy_list(operation.attributes[side], meshes, unreduced=True),
                values,
                strict=True,
            )
        ]
        for side, values in (
            ("in_shardings", operation.operands),
            ("out_shardings", operation.results),
        )
    )
    return inputs, results


def _joint_manual_computation(op: Operation) -> Function:
    """The joint form: a replica's whole arrays are the values of its first device."""
    axes = read_manual_axes(op.attribute("manual_axes"))
    meshes, n = op.module.symbols, op.module.grid.partitions
    types = [parameter_type(v.type) for v in op.ir.results]
    inputs, results = read_manual(op.ir, meshes, n)
    peers = read_peers(op.attribute("out_shardings"), meshes, axes, n)
    body = op.module.joint_body(op.ir.regions[0])

    def run_within(active: Active, lists: Sequence[list[Any]]) -> list[list[Array]]:
        """Runs within another one: each device's array is whole along this one's axes only."""
        shards = [
            [divide(x, [parts[d % n]])[0] for d, x in zip(active, values, strict=True)]
            for values, parts in zip(lists, inputs, strict=True)
        ]
        place = {device: i for i, device in enumerate(active)}
        whole: list[list[Array]] = []
        for own, parts, kind in zip(map(list, body(active, *shards)), results, types, strict=True):
            groups = [[d - d % n + peer for peer in peers[d % n]] for d in active]
            whole.append(
                [
                    assemble([own[place[e]] for e in group], [parts[e % n] for e in group], kind)
                    for group in groups
                ]
            )
        return whole

    def run(active: Active, *lists: Any) -> list[list[Array]]:
        if any(device % n for device in active):
            return run_within(active, lists)
        devices = tuple(first + p for first in active for p in range(n))
        shards = [
            [part for x in values for part in divide(x, parts)]
            for values, parts in zip(lists, inputs, strict=True)
        ]
        return [
            [assemble(own[i : i + n], parts, kind) for i in range(0, len(own), n)]
            for own, parts, kind in zip(
                map(list, body(devices, *shards)), results, types, strict=True
            )
        ]

    return run


def _manual_computation(op: Operation) -> Function:
    joint = _joint_manual_computation(op)
    return unpack_single(op, lambda *values: [own for [own] in joint((0,), *([x] for x in values))])


def _pass_on(op: Operation) -> Function:
    return lambda x: x


def _nothing(op: Operation) -> Function:
    return lambda *values: ()


OPERATIONS: dict[str, Lowering] = {
    MANUAL_COMPUTATION: _manual_computation,
    "sdy.propagation_barrier": _pass_on,
    "sdy.reshard": _pass_on,
    "sdy.sharding_constraint": _pass_on,
    "sdy.sharding_group": _nothing,
}
"""Operation name to lowering."""
JOINT_PARTS: dict[str, Lowering] = {
    MANUAL_COMPUTATION: lambda op: unpack_single(op, _joint_manual_computation(op)),
}
"""The joint forms, of several replicas."""


def drop_constraints(module: ir.Module) -> None:
    """Removes Shardy's operations that leave values as they are."""
    found: list[ir.Operation] = []

    def note(operation: ir.Operation) -> ir.WalkResult:
        if operation.name in OPERATIONS and operation.name != MANUAL_COMPUTATION:
            found.append(operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(note)
    for operation in found:
        for result in operation.results:
            result.replace_all_uses_with(operation.operands[0])
        operation.erase()
