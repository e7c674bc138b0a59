"""`sort_keys`: the keys of a comparator that compares keys in lexical order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from plugrt.stablehlo.attributes import attribute_names
from plugrt.stablehlo.bindings import ir
from plugrt_numpy.bodies import free_values
from plugrt_numpy.data_types import Array
from plugrt_numpy.operation import Operation
from plugrt_numpy.operations.constants import constant_value

Expression = tuple[Any, ...]
"""An operation's name, its attributes, and its operands' expressions.

``("key", i)`` is the element of operand i, on either side of the comparison.
"""


@dataclass(frozen=True)
class SortKey:
    """One key: a function of the operands that is compared by ``<`` or ``>``."""

    of: Callable[[Sequence[Array]], Array]
    descending: bool
    total: bool
    """Whether floats are in total order; else zeros are equal, and so are NaNs."""
    nans_first: bool
    expression: Expression


def sort_keys(op: Operation) -> list[SortKey]:
    """Returns the keys that a comparator orders by, the first one first; [] if it has no keys.

    Recognised are ``a < b`` and ``a > b`` of one key, such a one ``or (a == a and b != b)``, which
    puts NaNs last (or first, with swapped sides), and the chains of these that JAX and plugrt
    write: ``a0 < b0 or (a0 == b0 and ...)`` and ``select(a0 == b0, ..., a0 < b0)``, where each key
    is any function of elements that is the same on both sides.
    """
    region = op.ir.regions[0]
    block = region.blocks[0]
    if not op.body().elementwise or any(
        not isinstance(v.owner, ir.Operation | ir.OpView) or v.owner.name != "stablehlo.constant"
        for v in free_values(region)
    ):
        return []
    return _Reader(op, list(block.arguments)).keys(
        block.operations[len(block.operations) - 1].operands[0]
    )


class _Reader:
    def __init__(self, op: Operation, arguments: list[ir.Value]) -> None:
        self._op = op
        self._side = {value: i % 2 for i, value in enumerate(arguments)}
        self._place = {value: i // 2 for i, value in enumerate(arguments)}

    def keys(self, value: ir.Value) -> list[SortKey]:
        made_by = _operation(value)
        if made_by is None:
            return []
        if made_by.name == "stablehlo.compare":
            key = self._strict(made_by)
            return [key] if key else []
        operands = list(made_by.operands)
        if made_by.name == "stablehlo.or":
            if key := self._with_nans(operands):
                return [key]
            for first, second in (operands, operands[::-1]):
                both = _operation(second)
                if both is not None and both.name == "stablehlo.and":
                    left, right = both.operands
                    for equal, rest in ((left, right), (right, left)):
                        if keys := self._chain(first, equal, rest):
                            return keys
        if made_by.name == "stablehlo.select":
            return self._chain(operands[2], operands[0], operands[1])
        return []

    def _chain(self, less: ir.Value, equal: ir.Value, rest: ir.Value) -> list[SortKey]:
        """Returns the keys of "less, or equal and the rest"."""
        first = self.keys(less)
        if len(first) != 1 or not self._is_equality(equal, first[0]):
            return []
        others = self.keys(rest)
        return [*first, *others] if others else []

    def _is_equality(self, value: ir.Value, key: SortKey) -> bool:
        """Whether a value tests if a key is equal: by ``==``, or as neither before nor after."""
        made_by = _operation(value)
        if made_by is None:
            return False
        if made_by.name == "stablehlo.compare":
            sides = self._sides(made_by)
            same = sides is not None and sides[0] == key.expression
            return same and _direction(made_by) == "EQ" and _is_total(made_by) == key.total
        either = _operation(made_by.operands[0]) if made_by.name == "stablehlo.not" else None
        if either is None or either.name != "stablehlo.or":
            return False
        before, after = (self.keys(v) for v in either.operands)
        if len(before) != 1 or len(after) != 1:
            return False
        turned = not before[0].descending, not before[0].nans_first
        return (
            before[0].expression == after[0].expression == key.expression
            and (after[0].descending, after[0].nans_first) == turned
        )

    def _with_nans(self, operands: list[ir.Value]) -> SortKey | None:
        """Returns the key of "less, or a number before one that is none"."""
        for less, rest in (operands, operands[::-1]):
            strict, both = _operation(less), _operation(rest)
            if strict is None or both is None or both.name != "stablehlo.and":
                continue
            key = self._strict(strict) if strict.name == "stablehlo.compare" else None
            for number, none in (list(both.operands), list(both.operands)[::-1]):
                a, b = self._self_compare(number, "EQ"), self._self_compare(none, "NE")
                if key and a and b and a[1] == b[1] == key.expression and {a[0], b[0]} == {0, 1}:
                    return replace(key, nans_first=a[0] == 1)
        return None

    def _self_compare(
        self, value: ir.Value, direction: str
    ) -> tuple[int | None, Expression] | None:
        """Returns the value that is compared with itself, which distinguishes NaNs from numbers."""
        compare = _operation(value)
        if compare is None or compare.name != "stablehlo.compare":
            return None
        left, right = compare.operands
        if left != right or _direction(compare) != direction or _is_total(compare):
            return None
        return self._expression(left)

    def _strict(self, compare: ir.Operation) -> SortKey | None:
        """Returns the key of a ``<`` or ``>``."""
        direction, sides = _direction(compare), self._sides(compare)
        if sides is None or direction not in ("LT", "GT"):
            return None
        expression, swapped = sides
        value = compare.operands[0]
        descending = (direction == "GT") != swapped
        return SortKey(self._function(value), descending, _is_total(compare), False, expression)

    def _sides(self, compare: ir.Operation) -> tuple[Expression, bool] | None:
        """Returns the key on both sides, and whether the second argument's is on the left."""
        left, right = (self._expression(v) for v in compare.operands)
        if left is None or right is None or left[1] != right[1] or {left[0], right[0]} != {0, 1}:
            return None
        return left[1], left[0] == 1

    def _expression(self, value: ir.Value) -> tuple[int | None, Expression] | None:
        """Returns which side a value depends on and how; None if it depends on both."""
        if value in self._side:
            return self._side[value], ("key", self._place[value])
        made_by = _operation(value)
        if made_by is None or made_by.regions or made_by.name == "func.call":
            return None
        parts = [self._expression(v) for v in made_by.operands]
        if any(part is None for part in parts):
            return None
        known = [part for part in parts if part is not None]
        sides = {side for side, _ in known if side is not None}
        if len(sides) > 1:
            return None
        side = sides.pop() if sides else None
        kind = str(made_by.results[0].type)
        return side, (made_by.name, _attributes(made_by), kind, *(e for _, e in known))

    def _function(self, value: ir.Value) -> Callable[[Sequence[Array]], Array]:
        """Returns the function from the operands to the key."""
        if value in self._place:
            place = self._place[value]
            return lambda arrays: arrays[place]
        made_by = _operation(value)
        assert made_by is not None
        if made_by.name == "stablehlo.constant":
            constant = constant_value(Operation(made_by, self._op.module))
            return lambda arrays: constant
        function = self._op.module.lower(Operation(made_by, self._op.module))
        parts = [self._function(v) for v in made_by.operands]
        return lambda arrays: np.asarray(function(*[part(arrays) for part in parts]))


def _operation(value: ir.Value) -> ir.Operation | None:
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner.operation


def _attributes(operation: ir.Operation) -> str:
    """Returns the text of an operation without values' names, which includes its attributes."""
    if operation.name == "stablehlo.constant":
        return str(operation.get_asm()).partition(" = ")[2]
    names = attribute_names(operation)
    return ", ".join(f"{name} = {operation.attributes[name]}" for name in names)


def _direction(compare: ir.Operation) -> str:
    return str(compare.attributes["comparison_direction"]).rstrip(">").split()[-1]


def _is_total(compare: ir.Operation) -> bool:
    return "compare_type" in compare.attributes and "TOTALORDER" in str(
        compare.attributes["compare_type"]
    )
