"""`varying_axes`: along which axes of a mesh the values of a manual region differ."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from plugrt.stablehlo.bindings import ir
from plugrt.stablehlo.regions import callee, functions_by_name, returned_values
from plugrt.stablehlo.replica_groups import read_table

Axes = frozenset[object]
_NONE: Axes = frozenset()
_GIVES_ALL_THE_SAME = ("stablehlo.all_reduce", "stablehlo.all_gather")
_GIVES_EACH_ITS_OWN = ("stablehlo.all_to_all", "stablehlo.reduce_scatter")
_NUMBERS = ("stablehlo.partition_id", "stablehlo.replica_id")


def varying_axes(
    module: ir.Module, block: ir.Block, arguments: Sequence[Axes], sizes: Mapping[Any, int]
) -> list[Axes]:
    """Returns, for each value that a block returns, the axes along which devices differ in it.

    ``arguments`` has those of the block's first arguments, the others are the same everywhere;
    ``sizes`` are those of the mesh's axes, which number the devices in row-major order. A value
    varies with what it is computed of; sums and gathers over all of an axis end that.
    """
    return _Walk(module, sizes).block(block, arguments)


class _Walk:
    def __init__(self, module: ir.Module, sizes: Mapping[object, int]) -> None:
        self._module, self._sizes = module, sizes
        self._every: Axes = frozenset(name for name, size in sizes.items() if size > 1)
        self._ids = np.arange(math.prod(sizes.values())).reshape([*sizes.values()])
        names = [*sizes]
        self._steps = {n: math.prod(sizes[m] for m in names[i + 1 :]) for i, n in enumerate(names)}
        self._known: dict[ir.Value, Axes] = {}
        self._numbers: dict[ir.Value, tuple[int, int]] = {}
        """Values that are ``id // step % size`` of the device's id: step and size."""

    def block(self, block: ir.Block, arguments: Sequence[Axes]) -> list[Axes]:
        """Goes through a block's operations, for arguments that vary so."""
        given = [*arguments, *[_NONE] * (len(block.arguments) - len(arguments))]
        self._known.update(zip(block.arguments, given, strict=True))
        *operations, end = block.operations
        for view in operations:
            operation = view.operation
            found = self._results(operation)
            self._known.update(zip(operation.results, found, strict=True))
        return self._of(end.operation.operands)

    def _of(self, values: Sequence[ir.Value]) -> list[Axes]:
        return [self._known.get(value, _NONE) for value in values]

    def _results(self, operation: Any) -> list[Axes]:
        operands, name = self._of(operation.operands), operation.name
        if name == "stablehlo.while":
            return self._loop(operation, operands)
        if name in ("stablehlo.if", "stablehlo.case"):
            branches = [self.block(region.blocks[0], ()) for region in operation.regions]
            return [operands[0].union(*of) for of in zip(*branches, strict=True)]
        if name == "func.call":
            function = functions_by_name(self._module)[callee(operation)]
            return self.block(function.regions[0].blocks[0], operands)
        if name == "sdy.manual_computation":
            block = operation.regions[0].blocks[0]
            inner = self.block(block, operands)
            self._number(operation.results, returned_values(block))
            return inner
        found = _NONE.union(*operands)
        if name in (*_GIVES_ALL_THE_SAME, *_GIVES_EACH_ITS_OWN):
            found = self._combine(operation, found)
        elif name == "stablehlo.collective_permute":
            pairs = read_table(operation.attributes["source_target_pairs"])
            found |= self._axes_between(pairs) or self._every
        elif name == "stablehlo.rng":
            found = self._every
        elif name in _NUMBERS:
            found = self._every
            self._numbers[operation.results[0]] = 1, len(self._ids.flat)
        elif name in ("stablehlo.divide", "stablehlo.remainder"):
            found = self._part_of_number(operation) or found
        return [found] * len(operation.results)

    def _number(self, results: Sequence[ir.Value], values: Sequence[ir.Value]) -> None:
        for result, value in zip(results, values, strict=True):
            if value in self._numbers:
                self._numbers[result] = self._numbers[value]

    def _part_of_number(self, operation: Any) -> Axes | None:
        """Returns the axes along which a part of a device's number differs: an index along some.

        A number divided by a step and then the remainder of a size is the index along the axes
        between. None for other divisions.
        """
        value, by = operation.operands
        if value not in self._numbers or getattr(by.owner, "name", "") != "stablehlo.constant":
            return None
        constant = ir.DenseIntElementsAttr(by.owner.attributes["value"])
        step, size = self._numbers[value]
        divisor = int(constant.get_splat_value().value)
        is_division = operation.name == "stablehlo.divide"
        step, size = (step * divisor, size // divisor) if is_division else (step, divisor)
        self._numbers[operation.results[0]] = step, size
        return frozenset(name for name in self._every if step <= self._steps[name] < step * size)

    def _loop(self, operation: Any, carried: list[Axes]) -> list[Axes]:
        condition, body = (region.blocks[0] for region in operation.regions)
        while True:
            [goes_on] = self.block(condition, carried)
            step = self.block(body, carried)
            new = [a | b | goes_on for a, b in zip(carried, step, strict=True)]
            if new == carried:
                return carried
            carried = new

    def _combine(self, operation: Any, found: Axes) -> Axes:
        """Returns the axes along which the result of a collective in groups differs.

        ``found`` are those of its operand. Where all devices along an axis are in each group, they
        have the same; where the groups are others from one place along an axis to the next, what
        differs anywhere differs there, too.
        """
        table = read_table(operation.attributes["replica_groups"])
        groups = {frozenset(i for i in row if i >= 0) for row in table}
        shifted = {name: {frozenset(self._next(i, name) for i in g) for g in groups}
                   for name in self._sizes}  # fmt: skip
        uneven = frozenset(name for name, moved in shifted.items() if moved != groups)
        if operation.name in _GIVES_EACH_ITS_OWN:
            pairs = [(min(group), i) for group in groups for i in group]
            return found | uneven | self._axes_between(pairs)
        joined = frozenset(
            name for name in self._sizes if all(self._next(i, name) in g for g in groups for i in g)
        )
        differ = bool(found) or len({len(group) for group in groups}) > 1
        return (found - joined) | (uneven if differ else _NONE)

    def _next(self, device: int, name: object) -> int:
        """Returns the device after one along an axis; after the last the first."""
        step, size = self._steps[name], self._sizes[name]
        at = device // step % size
        return device + ((at + 1) % size - at) * step

    def _axes_between(self, pairs: Sequence[Sequence[int]]) -> Axes:
        """Returns the axes along which the devices of some pair differ."""
        ends = [np.unravel_index(column, self._ids.shape) for column in zip(*pairs, strict=True)]
        if not ends:
            return _NONE
        moved = [np.any(a != b) for a, b in zip(*ends, strict=True)]
        return frozenset(name for name, differs in zip(self._sizes, moved, strict=True) if differs)
