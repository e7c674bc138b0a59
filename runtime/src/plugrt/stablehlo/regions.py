"""Rewrites the results of blocks, operations with regions, and calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from plugrt.stablehlo.attributes import attribute_names
from plugrt.stablehlo.bindings import func, hlo, ir, shardy


def terminator(block: ir.Block) -> Any:
    """Returns the operation that ends a block."""
    return block.operations[len(block.operations) - 1].operation


def returned_values(block: ir.Block) -> list[ir.Value]:
    """Returns the values that a block returns."""
    return [*terminator(block).operands]


def return_values(block: ir.Block, values: Sequence[ir.Value]) -> None:
    """Makes a block return other values."""
    last = terminator(block)
    if last.name == "sdy.return":
        new = shardy().ReturnOp
    else:
        new = func.ReturnOp if last.name == "func.return" else hlo.return_
    new(values, loc=last.location, ip=ir.InsertionPoint(last))
    last.erase()


def retype(
    old: Any, operands: Sequence[ir.Value], results: Sequence[ir.Type], **attributes: ir.Attribute
) -> Any:
    """Inserts before an operation one of the same name and attributes, and moves its regions there.

    The caller replaces the uses of the old results and erases the old operation.
    """
    given = {name: old.attributes[name] for name in attribute_names(old)}
    new = ir.Operation.create(
        old.name,
        results=results,
        operands=operands,
        attributes={**given, **attributes},
        regions=len(old.regions),
        loc=old.location,
        ip=ir.InsertionPoint(old),
    )
    for source, target in zip(old.regions, new.regions, strict=True):
        for block in [*source.blocks]:
            block.append_to(target)
    return new


def operations_within(op: Any) -> Iterator[ir.Operation]:
    """Yields an operation and all within it."""
    yield op
    for region in op.regions:
        for block in region.blocks:
            for view in block.operations:
                yield from operations_within(view.operation)


def find_dependent(block: ir.Block, arguments: Sequence[int]) -> list[bool]:
    """Returns whether each value that a block returns depends on one of these arguments of it.

    Each result of an operation depends on all values that its regions use.
    """
    reached = {block.arguments[i] for i in arguments}
    for view in block.operations:
        inner = operations_within(view.operation)
        if any(value in reached for operation in inner for value in operation.operands):
            reached.update(view.operation.results)
    return [value in reached for value in returned_values(block)]


def callee(op: Any, attribute: str = "callee") -> str:
    """Returns the symbol of the function that a ``func.call`` calls, or that an attribute names."""
    return str(ir.FlatSymbolRefAttr(op.operation.attributes[attribute]).value)


def functions_by_name(module: ir.Module) -> dict[str, Any]:
    """Returns the functions of a module under their symbols."""
    return {str(ir.StringAttr(f.attributes["sym_name"]).value): f for f in module.body.operations}


def inline_calls(block: ir.Block, functions: Mapping[str, object]) -> None:
    """Puts the operations of the functions that a block calls in place of the calls.

    Calls within the regions of its operations stay.
    """
    while calls := [op for op in block.operations if op.operation.name == "func.call"]:
        for call in calls:
            _inline(call, functions[callee(call)])


def _inline(call: Any, function: Any) -> None:
    block = function.regions[0].blocks[0]
    known = dict(zip(block.arguments, call.operation.operands, strict=True))
    with ir.InsertionPoint(call):
        returned = clone_block(block, known)
    for old, new in zip(list(call.operation.results), returned, strict=True):
        old.replace_all_uses_with(new)
    call.operation.erase()


def inline_block(block: ir.Block, operands: Sequence[ir.Value]) -> list[ir.Value]:
    """Moves a block's operations to the insertion point; returns the values that it returned."""
    for argument, operand in zip(block.arguments, operands, strict=True):
        argument.replace_all_uses_with(operand)
    here = ir.InsertionPoint.current
    *body, end = block.operations
    for view in body:
        view.operation.detach_from_parent()
        here.insert(view)
    return [*end.operation.operands]


def clone_block(block: ir.Block, known: dict[ir.Value, ir.Value]) -> list[ir.Value]:
    """Copies a block's operations to the insertion point; returns the copies of its results.

    ``known`` maps the block's arguments to values; the copies' results are added to it.
    """
    *body, end = list(block.operations)
    for op in body:
        clone = op.operation.clone(ip=ir.InsertionPoint.current)
        _replace_operands(clone, known)
        known.update(zip(op.operation.results, clone.results, strict=True))
    return [known.get(x, x) for x in end.operation.operands]


def _replace_operands(operation: Any, known: dict[ir.Value, ir.Value]) -> None:
    for i, operand in enumerate(operation.operands):
        if operand in known:
            operation.operands[i] = known[operand]
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                _replace_operands(inner.operation, known)
