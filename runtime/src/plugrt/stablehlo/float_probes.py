"""A copy of a program that tells which of its values hold a NaN or an infinity."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plugrt.stablehlo.bindings import func, hlo, ir
from plugrt.stablehlo.modules import bytecode, parse
from plugrt.stablehlo.types import element_type, ir_type_to_dtype, ir_type_to_tensor_type

_REDUCTIONS = ("stablehlo.reduce", "stablehlo.reduce_window")


@dataclass(frozen=True)
class Probes:
    """A module whose ``main`` gives one vector: for each of ``values`` whether it holds one."""

    module: ir.Module
    values: Sequence[ir.Value]
    results: Sequence[ir.Value]
    """What ``main`` gave before."""

    def describe_origin(self, flags: Sequence[bool]) -> str:
        """Returns where the first result that holds one has it from; empty if none does.

        It goes back from value to value that holds one, to an operation of values that do not.
        """
        faulty = {value for value, flag in zip(self.values, flags, strict=True) if flag}
        value = next((x for x in self.results if x in faulty), None)
        while value is not None:
            if isinstance(value.owner, ir.Block):
                return "it was passed in, no operation made it"
            made_by = value.owner.operation
            before = [x for x in made_by.operands if x in faulty and not _is_start(made_by, x)]
            if not before:
                return _describe(made_by)
            value = before[0]
        return ""


def add_probes(module: ir.Module, nans: bool, infs: bool) -> Probes:
    """Returns the probes of a module, which stays as it is. Functions that it calls are inlined.

    What a loop or a branch computes within counts as one value: its result. Where the module has no
    floating value, ``values`` is empty and ``module`` has no probes.
    """
    copy = parse(bytecode(module))
    functions = {str(op.attributes["sym_name"].value): op for op in copy.body.operations}
    main = functions["main"]
    block = main.regions[0].blocks[0]
    with copy.context, ir.Location.unknown():
        while calls := [op for op in block.operations if op.operation.name == "func.call"]:
            for call in calls:
                _inline(call, functions[call.attributes["callee"].value])
        *body, end = list(block.operations)
        made = [*block.arguments, *(x for op in body for x in op.operation.results)]
        values = [x for x in made if _is_floating(x)]
        results = list(end.operation.operands)
        if not values:  # MLIR's bindings end the process over a concatenation of nothing
            return Probes(copy, values, results)
        with ir.InsertionPoint(end):
            bit = ir.RankedTensorType.get([1], element_type(np.dtype(np.bool_)))
            flags = [hlo.reshape(bit, _holds_one(x, nans, infs)) for x in values]
            vector = hlo.concatenate(flags, dimension=0)
            func.ReturnOp([vector])
        end.operation.erase()
        takes = [x.type for x in block.arguments]
        main.attributes["function_type"] = ir.TypeAttr.get(
            ir.FunctionType.get(takes, [vector.type])
        )
        for name in ("arg_attrs", "res_attrs"):  # aliases of parameters and results that are gone
            if name in main.attributes:
                del main.attributes[name]
        copy.operation.verify()
    return Probes(copy, values, results)


def _inline(call: Any, callee: Any) -> None:
    block = callee.regions[0].blocks[0]
    known = dict(zip(block.arguments, call.operation.operands, strict=True))
    *body, end = list(block.operations)
    for op in body:
        clone = op.operation.clone(ip=ir.InsertionPoint(call))
        _replace_operands(clone, known)
        known.update(zip(op.operation.results, clone.results, strict=True))
    returned = [known.get(x, x) for x in end.operation.operands]
    for old, new in zip(list(call.operation.results), returned, strict=True):
        old.replace_all_uses_with(new)
    call.operation.erase()


def _replace_operands(operation: Any, known: dict[ir.Value, ir.Value]) -> None:
    for i, operand in enumerate(operation.operands):
        if operand in known:
            operation.operands[i] = known[operand]
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                _replace_operands(inner.operation, known)


def _is_floating(value: ir.Value) -> bool:
    type_ = value.type
    if not isinstance(type_, ir.RankedTensorType) or not type_.has_static_shape:
        return False
    return isinstance(type_.element_type, ir.FloatType | ir.ComplexType)


def _holds_one(value: Any, nans: bool, infs: bool) -> Any:
    """Returns a 0-d boolean: whether any element is a NaN, or an infinity, if asked for."""
    type_ = value.type
    if isinstance(type_.element_type, ir.ComplexType):
        parts = [_holds_one(part(value), nans, infs) for part in (hlo.real, hlo.imag)]
        return hlo.or_(*parts)
    single = element_type(np.dtype(np.float32))
    if ir_type_to_dtype(type_.element_type).itemsize < 4:
        value = hlo.convert(ir.RankedTensorType.get(type_.shape, single), value)
    found = []
    if nans:
        found.append(hlo.compare(value, value, _direction("NE")))
    if infs:
        element = value.type.element_type
        bound = hlo.constant(
            ir.DenseElementsAttr.get_splat(value.type, ir.FloatAttr.get(element, float("inf")))
        )
        found.append(hlo.compare(hlo.abs(value), bound, _direction("EQ")))
    return _any(found[0] if len(found) == 1 else hlo.or_(*found))


def _direction(name: str) -> Any:
    return hlo.ComparisonDirectionAttr.get(name)


def _any(bits: Any) -> Any:
    rank = bits.type.rank
    if not rank:
        return bits
    scalar = ir.RankedTensorType.get([], element_type(np.dtype(np.bool_)))
    none = hlo.constant(ir.DenseElementsAttr.get_splat(scalar, ir.BoolAttr.get(False)))
    reduction = hlo.ReduceOp([scalar], [bits], [none], list(range(rank)))
    block = ir.Block.create_at_start(reduction.regions[0], [scalar, scalar])
    with ir.InsertionPoint(block):
        hlo.return_([hlo.or_(*block.arguments)])
    return reduction.results[0]


def _is_start(operation: Any, operand: ir.Value) -> bool:
    """Whether a value is what a reduction starts from, such as the infinity of a maximum."""
    half = len(operation.operands) // 2
    return operation.name in _REDUCTIONS and operand in list(operation.operands)[half:]


def _describe(operation: Any) -> str:
    where = _find_line(str(operation.location))
    if operation.name == "stablehlo.constant":
        tensor_type = ir_type_to_tensor_type(operation.results[0].type)
        return f"it is in a constant of the program, {tensor_type}{where}"
    takes = ", ".join(str(ir_type_to_tensor_type(x.type)) for x in operation.operands)
    return f"it comes from {operation.name} of ({takes}){where}"


def _find_line(location: str) -> str:
    found = re.search(r'"([^"]*)":(\d+):', location)
    if found is None:
        return ""
    file, line = found.groups()
    return f" in line {line} of its text" if file == "-" else f" at {file}:{line}"
