"""`compute_in_eight_bits`: rewrites a program so that integers of 2 or 4 bits are int8 within it.

XLA's CPU compiler computes some operations on them wrongly, and ends the process at others
(docs/findings.md). ``main`` keeps its type: parameters are converted as it begins, and results as
it ends. In between an integer of two bits is an int8 with one of its four values, so the results of
some operations must be reduced to these values.
"""

# Workaround for xla-two-bit-join

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from plugrt.errors import Unimplemented
from plugrt.stablehlo.attributes import symbol_of, text_of
from plugrt.stablehlo.bindings import ir, register_shardy, shardy
from plugrt.stablehlo.regions import operations_within, return_values, retype, terminator

INTEGERS = {"i2": "i8", "ui2": "ui8", "i4": "i8", "ui4": "ui8"}
"""Element types, and the wider types that replace them."""

FLOAT = "f4E2M1FN"

_EXACT = frozenset(
    f"stablehlo.{name}"
    for name in (
        "all_gather", "all_to_all", "and", "broadcast", "broadcast_in_dim", "case", "clamp",
        "collective_broadcast", "collective_permute", "concatenate", "dynamic_broadcast_in_dim",
        "dynamic_gather", "dynamic_pad", "dynamic_reshape", "dynamic_slice", "dynamic_update_slice",
        "gather", "if", "map", "maximum", "minimum", "optimization_barrier", "or", "pad",
        "real_dynamic_slice", "reduce", "reduce_window", "remainder", "reshape", "reverse",
        "scatter", "select", "select_and_scatter", "sign", "slice", "composite", "sort",
        "transpose", "while", "xor",
    )
) | {
    "func.call", "sdy.manual_computation", "sdy.named_computation", "sdy.reshard",
    "sdy.sharding_constraint",
}  # fmt: skip
"""Operations whose results are values of the type if their operands are, or their regions' results;
for unsigned integers also those of ``shift_right_logical``."""
_REDUCED = frozenset(
    f"stablehlo.{name}"
    for name in (
        "abs", "add", "all_reduce", "convolution", "divide", "dot", "dot_general", "dynamic_iota",
        "iota", "multiply", "negate", "not", "popcnt", "power", "reduce_scatter", "shift_left",
        "shift_right_arithmetic", "shift_right_logical", "subtract",
    )
)  # fmt: skip
"""Operations whose results must be reduced to the type's values: their low bits are correct."""
_BARE = ("stablehlo.all_reduce", "stablehlo.reduce_scatter")
"""XLA requires their bodies to be one operation, so only their results are reduced."""
_OF_BITS = ("stablehlo.popcnt", "stablehlo.shift_right_logical")
"""Operations whose results depend on the bits above the narrow type's."""
_TAKES = ("stablehlo.compare", "stablehlo.convert", "stablehlo.get_dimension_size")
"""Operations with results of other types, which accept the wider integers unchanged."""
_ENDS = ("func.return", "stablehlo.return", "sdy.return")
_PLACING = ("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement")
"""Targets of custom calls that return their operand."""


def compute_in_eight_bits(
    module: ir.Module, names: Collection[str], keeps_shardings: bool = False
) -> None:
    """Rewrites a module in place, with int8 or uint8 instead of integers of the element types.

    With ``keeps_shardings`` the partitioner exchanges no data of the narrow types: arguments and
    results of ``main`` have the same sharding before and after their conversion.

    Raises `Unimplemented` for an operation that it cannot rewrite.
    """
    with module.context, ir.Location.unknown():
        if keeps_shardings:
            register_shardy(module.context)
        _Rewrite(names, keeps_shardings).rewrite(module)


def faulty_operations(
    module: ir.Module, faults: Mapping[str, Collection[str]]
) -> Iterator[tuple[str, str]]:
    """Yields a module's operations with element types that ``faults`` lists for them."""
    for op in operations_within(module.operation):
        name = op.name.removeprefix("stablehlo.")
        if wrong := faults.get(name):
            for value in (*op.operands, *op.results):
                if _element(value) in wrong:
                    yield name, _element(value)


def compute_floats_in_float32(module: ir.Module, names: Collection[str]) -> None:
    """Makes the operations of these names compute float4 as float32, in place.

    That rounds once, as they do. Raises `Unimplemented` for those with regions.
    """
    with module.context, ir.Location.unknown():
        for op in [*operations_within(module.operation)]:
            floats = [v for v in op.operands if _element(v) == FLOAT]
            if op.name.removeprefix("stablehlo.") in names and floats:
                if len(op.regions):
                    raise Unimplemented(
                        f"the program has {op.name} of {FLOAT}, which XLA's CPU compiler does "
                        "wrongly: convert to float32 before it, and back after it"
                    )
                with ir.InsertionPoint(op), op.location:
                    _compute_in_float32(op)


def _compute_in_float32(op: Any) -> None:
    wide = ir.F32Type.get()
    operands = [
        _convert_value(v, ir.RankedTensorType.get(v.type.shape, wide))
        if _element(v) == FLOAT
        else v
        for v in op.operands
    ]
    kinds = [
        ir.RankedTensorType.get(r.type.shape, wide) if _element(r) == FLOAT else r.type
        for r in op.results
    ]
    new = retype(op, operands, kinds)
    for old, made in zip(op.results, new.results, strict=True):
        old.replace_all_uses_with(made if made.type == old.type else _convert_value(made, old.type))
    op.erase()


class _Rewrite:
    def __init__(self, names: Collection[str], keeps_shardings: bool) -> None:
        parse = ir.Type.parse
        self._wide = {str(parse(name)): parse(INTEGERS[name]) for name in names}
        self._keeps_shardings = keeps_shardings
        self._narrow: dict[ir.Value, ir.Type] = {}
        """The values that now have a wider type, and their former types."""

    def rewrite(self, module: ir.Module) -> None:
        for view in module.body.operations:
            function = view.operation
            if function.name != "func.func" or not len(function.regions[0].blocks):
                continue
            block = function.regions[0].blocks[0]
            if symbol_of(function) == "main":
                self._enter(function, block)
                self._block(block)
                self._restore_results(function, block)
            else:
                self._retype_arguments(block)
                self._block(block)
                kind = function.attributes["function_type"].value
                gives = [self._find_wider_type(t) or t for t in kind.results]
                whole = ir.FunctionType.get([a.type for a in block.arguments], gives)
                function.attributes["function_type"] = ir.TypeAttr.get(whole)

    def _enter(self, function: object, block: ir.Block) -> None:
        with ir.InsertionPoint.at_block_begin(block):
            for number, argument in enumerate(block.arguments):
                if kind := self._find_wider_type(argument.type):
                    stated = _attributes(function, "arg_attrs", number)
                    self._replace(argument, partial(self._entering, kind, stated))

    def _entering(
        self, kind: ir.Type, stated: Mapping[str, ir.Attribute], value: ir.Value
    ) -> ir.Value:
        return self._pin(_convert_value(value, kind), stated)

    def _restore_results(self, function: Any, block: ir.Block) -> None:
        kinds = function.attributes["function_type"].value.results
        last = terminator(block)
        given = [*last.operands]
        with ir.InsertionPoint(last):
            for number, (value, kind) in enumerate(zip(given, kinds, strict=True)):
                if value in self._narrow:
                    value = self._pin(value, _attributes(function, "res_attrs", number))
                    given[number] = _convert_value(value, kind)
        return_values(block, given)

    def _pin(self, value: ir.Value, stated: Mapping[str, ir.Attribute]) -> ir.Value:
        """Returns a value with the sharding in the attributes of a parameter or a result.

        The barrier keeps XLA from moving the conversion to the other side of an exchange.
        """
        if not self._keeps_shardings:
            return value
        if (sharding := stated.get("sdy.sharding")) is not None:
            value = shardy().sharding_constraint(value, sharding)
        elif (sharding := stated.get("mhlo.sharding")) is not None:
            value = _create(
                "stablehlo.custom_call", [value], value.type,
                call_target_name=ir.StringAttr.get("Sharding"), **{"mhlo.sharding": sharding},
            )  # fmt: skip
        return _create("stablehlo.optimization_barrier", [value], value.type)

    def _block(self, block: ir.Block, reduce: bool = True) -> None:
        for view in [*block.operations]:
            self._operation(view.operation, reduce)

    def _operation(self, op: Any, reduce: bool) -> None:
        for region in op.regions:
            for block in region.blocks:
                self._retype_arguments(block)
                self._block(block, reduce and op.name not in _BARE)
        gives = any(self._find_wider_type(r.type) for r in op.results)
        takes = any(v in self._narrow for v in op.operands)
        if not (gives or takes) or op.name in _ENDS:
            return
        with ir.InsertionPoint(op), op.location:
            if op.name in _EXACT or op.name in _REDUCED or _target(op) in _PLACING:
                if gives:
                    self._widen_operation(op, reduce and op.name in _REDUCED)
            elif op.name == "stablehlo.convert" and gives and not _is_float(op.operands[0].type):
                self._convert(op)
            elif op.name == "stablehlo.count_leading_zeros":
                self._count_leading_zeros(op)
            elif op.name not in _TAKES or gives:
                self._keep(op)

    def _widen_operation(self, op: Any, reduce: bool) -> None:
        """Makes the operation compute in the wider type."""
        operands = [*op.operands]
        if op.name in _OF_BITS:
            operands[0] = _bits(operands[0], self._narrow[operands[0]])
        if op.name == "stablehlo.shift_right_arithmetic" and reduce:
            operands[0] = _extend_sign(operands[0], self._narrow[operands[0]])
        new = retype(op, operands, [self._find_wider_type(r.type) or r.type for r in op.results])
        for old, made in zip(op.results, new.results, strict=True):
            value = (
                _reduce_to_narrow(made, old.type)
                if reduce and self._find_wider_type(old.type)
                else made
            )
            if self._find_wider_type(old.type):
                self._narrow[value] = old.type
            old.replace_all_uses_with(value)
        op.erase()

    def _convert(self, op: Any) -> None:
        narrow = op.results[0].type
        value = _convert_value(op.operands[0], self._find_wider_type(narrow))
        self._put(
            op, value if _element(op.operands[0]) == "i1" else _reduce_to_narrow(value, narrow)
        )

    def _count_leading_zeros(self, op: Any) -> None:
        narrow = op.results[0].type
        zeros = _create(op.name, [_bits(op.operands[0], narrow)], self._find_wider_type(narrow))
        surplus = _splat(8 - _width(narrow), zeros.type)
        left = _create("stablehlo.subtract", [zeros, surplus], zeros.type)
        self._put(op, _reduce_to_narrow(left, narrow))

    def _put(self, op: Any, value: ir.Value) -> None:
        self._narrow[value] = op.results[0].type
        op.results[0].replace_all_uses_with(value)
        op.erase()

    def _keep(self, op: Any) -> None:
        """Leaves the operation in the narrow type, between conversions."""
        if len(op.regions):
            raise Unimplemented(
                f"the program has {op.name} on integers of 2 or 4 bits, some of whose operations "
                "XLA's CPU compiler does wrongly, and plugrt cannot rewrite it for int8: convert "
                "them to int8 before it"
            )
        for number, operand in enumerate([*op.operands]):
            if operand in self._narrow:
                op.operands[number] = _convert_value(operand, self._narrow[operand])
        block = op.block
        following = [*block.operations]
        at = next(i for i, view in enumerate(following) if view.operation == op) + 1
        with ir.InsertionPoint(following[at]):
            for result in op.results:
                if kind := self._find_wider_type(result.type):
                    self._replace(result, partial(_convert_value, kind=kind))

    def _find_wider_type(self, kind: ir.Type) -> ir.Type | None:
        """Returns the wider type that replaces a type; None for other types."""
        if not isinstance(kind, ir.RankedTensorType):
            return None
        element = self._wide.get(str(kind.element_type))
        return element and ir.RankedTensorType.get(kind.shape, element, kind.encoding)

    def _replace(self, old: ir.Value, make: Callable[[ir.Value], ir.Value]) -> None:
        """Replaces the uses of a value by the value that ``make`` returns for it."""
        uses = [(use.owner.operation, use.operand_number) for use in old.uses]
        new = make(old)
        self._narrow[new] = old.type
        for user, number in uses:
            user.operands[number] = new

    def _retype_arguments(self, block: ir.Block) -> None:
        for argument in block.arguments:
            if kind := self._find_wider_type(argument.type):
                narrow = argument.type
                argument.set_type(kind)
                self._narrow[argument] = narrow


def _create(
    name: str, operands: Sequence[ir.Value], kind: ir.Type, **attributes: object
) -> ir.Value:
    made = ir.Operation.create(name, results=[kind], operands=operands, attributes=attributes)
    value: ir.Value = made.results[0]
    return value


def _convert_value(value: ir.Value, kind: ir.Type) -> ir.Value:
    return _create("stablehlo.convert", [value], kind)


def _splat(number: int, kind: ir.Type) -> ir.Value:
    element = ir.IntegerAttr.get(kind.element_type, number)
    dense = ir.DenseElementsAttr.get_splat(kind, element)
    return _create("stablehlo.constant", [], kind, value=dense)


def _bits(value: ir.Value, narrow: ir.Type) -> ir.Value:
    """Returns the bits of a narrow value, with zeros above them."""
    mask = _splat((1 << _width(narrow)) - 1, value.type)
    return _create("stablehlo.and", [value, mask], value.type)


def _reduce_to_narrow(value: ir.Value, narrow: ir.Type) -> ir.Value:
    """Returns the value of the narrow type with the lowest bits of ``value``."""
    if str(narrow.element_type).startswith("u"):
        return _bits(value, narrow)
    return _extend_sign(value, narrow)


def _extend_sign(value: ir.Value, narrow: ir.Type) -> ir.Value:
    """Returns the bits of a narrow value, with copies of the highest above them."""
    above = _splat(8 - _width(narrow), value.type)
    for name in ("shift_left", "shift_right_arithmetic"):
        value = _create(f"stablehlo.{name}", [value, above], value.type)
    return value


def _width(narrow: ir.Type) -> int:
    return int(str(narrow.element_type)[-1])


def _element(value: ir.Value) -> str:
    """Returns the name of an array's element type; empty for other values."""
    return str(getattr(value.type, "element_type", ""))


def _is_float(kind: ir.Type) -> bool:
    """Whether a type is floating or complex: the compiler reports values out of range."""
    return "f" in str(kind.element_type)


def _target(op: Any) -> str | None:
    if op.name != "stablehlo.custom_call":
        return None
    return text_of(op.attributes["call_target_name"])


def _attributes(function: Any, key: str, number: int) -> Mapping[str, ir.Attribute]:
    if key not in function.attributes:
        return {}
    return {each.name: each.attr for each in function.attributes[key][number]}
