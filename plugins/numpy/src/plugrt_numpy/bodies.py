"""`RegionBody`: a compiled region and its properties."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from plugrt.stablehlo.bindings import ir
from plugrt_numpy.data_types import Function


class RegionBody:
    """A region that was compiled for one device."""

    __slots__ = ("block", "call", "elementwise")

    def __init__(self, block: ir.Block, call: Function, elementwise: bool) -> None:
        self.block = block
        self.call = call
        """Runs it: the block's arguments, then the captured values; returns a tuple."""
        self.elementwise = elementwise
        """Whether it has elementwise operations only: then it accepts arrays of any one shape."""


def free_values(region: ir.Region) -> list[ir.Value]:
    """Returns the values from outside that a region uses, constants among them, each once."""
    found: dict[ir.Value, None] = {}
    inside: set[ir.Value] = set()
    for operation in _walk(region, inside):
        for value in operation.operands:
            if value not in inside:
                found[value] = None
    return list(found)


def _walk(region: ir.Region, inside: set[ir.Value]) -> Iterator[ir.Operation]:
    for block in region.blocks:
        inside.update(block.arguments)
        for view in block.operations:
            operation = view.operation
            yield operation
            inside.update(operation.results)
            for inner in operation.regions:
                yield from _walk(inner, inside)


def single_operation(block: Any) -> str:
    """Returns the name of the operation if a block returns ``op(argument 0, argument 1)``.

    ``first`` or ``second`` if it returns an argument as it is; empty for everything else. The
    operations that matter are commutative, so the order of the arguments is ignored.
    """
    operations = [view.operation for view in block.operations]
    arguments = list(block.arguments)
    if len(arguments) != 2 or len(operations[-1].operands) != 1:
        return ""
    returned = operations[-1].operands[0]
    if len(operations) == 1:
        return {arguments[0]: "first", arguments[1]: "second"}.get(returned, "")
    if len(operations) != 2 or returned != operations[0].results[0]:
        return ""
    if sorted(map(hash, operations[0].operands)) != sorted(map(hash, arguments)):
        return ""
    return str(operations[0].name)
