"""`write_for_parts`: rewrites a program for whole arrays as the program of one device."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from plugrt.errors import Unimplemented
from plugrt.stablehlo.bindings import hlo, ir
from plugrt.stablehlo.regions import inline_block, operations_within, return_values, returned_values
from plugrt_numpy.devices import Grid
from plugrt_numpy.functions import ModuleCompiler, called_symbol
from plugrt_numpy.partitions import MANUAL_COMPUTATION, Parts, Signature, read_manual

_SHARDINGS = ("mhlo.sharding", "sdy.sharding")
_FIRST_CHANNEL = 1 << 30
"""Programs count their own channels from lower numbers."""


def write_for_parts(module: ir.Module, compiler: ModuleCompiler) -> None:
    """Rewrites a program for whole arrays, in place, as the one that each device runs.

    As a launch does, the program then gathers the parts of parameters, computes with whole arrays,
    and cuts the device's parts of results. A manual computation gets parts that are cut from whole
    arrays, and its results are gathered.

    Raises `Unimplemented` for a manual computation that may be within another.
    """
    grid, symbols = compiler.grid, compiler.symbols
    signature = Signature(module, grid.partitions)
    manual = [op for op in operations_within(module.operation) if op.name == MANUAL_COMPUTATION]
    if any(op.name == MANUAL_COMPUTATION for op in _run_within(manual, symbols)):
        raise Unimplemented(
            "an sdy.manual_computation in another has no form as a program of one device: "
            "lower().as_text() shows the program of all devices"
        )
    with module.context, ir.Location.unknown():
        writer = _PartWriter(grid)
        for operation in manual:
            inputs, results = read_manual(operation, symbols, grid.partitions)
            with ir.InsertionPoint(operation):
                taken = [*map(writer.cut, operation.operands, inputs)]
                given = inline_block(operation.regions[0].blocks[0], taken)
                whole = [*map(writer.gather, given, results)]
            for old, new in zip(operation.results, whole, strict=True):
                old.replace_all_uses_with(new)
            operation.erase()
        _divide(symbols["main"], signature, writer)
        for operation in operations_within(module.operation):
            for name in _SHARDINGS:
                if name in operation.attributes:
                    del operation.attributes[name]


def _run_within(
    outer: Sequence[ir.Operation], symbols: Mapping[str, ir.Operation]
) -> Iterator[ir.Operation]:
    """Yields the operations in the regions of ``outer``, and of the functions that these call."""
    waiting, called = [*outer], set[str]()
    while waiting:
        _, *inner = operations_within(waiting.pop())
        yield from inner
        names = {name for op in inner if (name := called_symbol(op))} - called
        called |= names
        waiting += [symbols[name] for name in names]


def _divide(main: Any, signature: Signature, writer: _PartWriter) -> None:
    """Gives ``main`` the parameters and results of one device."""
    [block] = main.regions[0].blocks
    whole = [*block.arguments]
    for value, parts in zip(whole, signature.input_parts, strict=True):
        block.add_argument(_part_type(value.type, parts), value.location)
    with ir.InsertionPoint.at_block_begin(block):
        own = [*block.arguments][len(whole) :]
        for old, new in zip(whole, map(writer.gather, own, signature.input_parts), strict=True):
            old.replace_all_uses_with(new)
    for _ in whole:
        block.erase_argument(0)
    given = returned_values(block)
    with ir.InsertionPoint(block.operations[len(block.operations) - 1]):
        results = [*map(writer.cut, given, signature.result_parts)]
    return_values(block, results)
    kind = ir.FunctionType.get([v.type for v in block.arguments], [v.type for v in results])
    main.attributes["function_type"] = ir.TypeAttr.get(kind)
    for key in ("arg_attrs", "res_attrs"):
        if key in main.attributes:
            main.attributes[key] = ir.ArrayAttr.get(
                [
                    ir.DictAttr.get({a.name: a.attr for a in each if a.name not in _SHARDINGS})
                    for each in main.attributes[key]
                ]
            )


def _part_type(whole: Any, parts: Parts) -> Any:
    if not isinstance(whole, ir.RankedTensorType):
        return whole
    return ir.RankedTensorType.get([s.stop - s.start for s in parts[0].slices], whole.element_type)


class _PartWriter:
    """Writes the operations that gather and cut parts, at the insertion point."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._channels = itertools.count(_FIRST_CHANNEL)

    def gather(self, part: ir.Value, parts: Parts) -> ir.Value:
        """Writes the sum of the terms of a part, and gathers the parts of each dimension."""
        places = [(own.term, *(s.start for s in own.slices)) for own in parts]
        seen: dict[Any, Iterator[int]] = defaultdict(itertools.count)
        copies = [next(seen[place]) for place in places]
        for i in range(len(places[0])):
            if len({place[i] for place in places}) == 1:
                continue
            groups: dict[Any, list[tuple[int, int]]] = {}
            for device, (place, copy) in enumerate(zip(places, copies, strict=True)):
                rest = (*place[:i], *place[i + 1 :], copy)
                groups.setdefault(rest, []).append((place[i], device))
            rows = [[device for _, device in sorted(group)] for group in groups.values()]
            part = self._add(part, rows) if i == 0 else self._concatenate(part, rows, i - 1)
        return part

    def _common(self, rows: Sequence[Sequence[int]]) -> dict[str, ir.Attribute]:
        count = self._grid.partitions
        table = [
            [first + i for i in row]
            for first in range(0, count * self._grid.replicas, count)
            for row in rows
        ]
        channel = f"#stablehlo.channel_handle<handle = {next(self._channels)}, type = 1>"
        return {
            "replica_groups": ir.DenseElementsAttr.get(np.array(table, np.int64)),
            "channel_handle": ir.Attribute.parse(channel),
            "use_global_device_ids": ir.UnitAttr.get(),
        }

    def _concatenate(self, part: ir.Value, rows: Sequence[Sequence[int]], axis: int) -> ir.Value:
        kind = ir.RankedTensorType(part.type)
        shape = [n * len(rows[0]) if i == axis else n for i, n in enumerate(kind.shape)]
        gathered = ir.RankedTensorType.get(shape, kind.element_type)
        whole: ir.Value = hlo.all_gather([gathered], [part], axis, **self._common(rows))
        return whole

    def _add(self, part: ir.Value, rows: Sequence[Sequence[int]]) -> ir.Value:
        scalar = ir.RankedTensorType.get([], ir.RankedTensorType(part.type).element_type)
        reduction = hlo.AllReduceOp([part.type], [part], **self._common(rows))
        block = ir.Block.create_at_start(reduction.regions[0], [scalar, scalar])
        with ir.InsertionPoint(block):
            hlo.return_([hlo.add(*block.arguments)])
        total: ir.Value = reduction.results[0]
        return total

    def cut(self, whole: ir.Value, parts: Parts) -> ir.Value:
        """Writes the part of a device; of several terms, the first is it, the others are 0."""
        kind = _part_type(whole.type, parts)
        if kind != whole.type:
            starts = zip(*([s.start for s in own.slices] for own in parts), strict=True)
            whole = hlo.dynamic_slice(whole, [*map(self._of_device, starts)], kind.shape)
        if any(own.term for own in parts):
            is_first = self._of_device([own.term == 0 for own in parts])
            zeros = hlo.constant(ir.DenseElementsAttr.get(np.zeros(kind.shape, np.int32)))
            whole = hlo.select(is_first, whole, hlo.convert(kind, zeros))
        return whole

    def _of_device(self, numbers: Sequence[int]) -> ir.Value:
        """Writes a scalar: the number at the partition's index."""
        if len({*numbers}) == 1:
            return hlo.constant(ir.DenseElementsAttr.get(np.array(numbers[0])))
        table = hlo.constant(ir.DenseElementsAttr.get(np.array(numbers)))
        row = hlo.dynamic_slice(table, [hlo.partition_id()], [1])
        scalar = ir.RankedTensorType.get([], ir.RankedTensorType(table.type).element_type)
        chosen: ir.Value = hlo.reshape(scalar, row)
        return chosen
