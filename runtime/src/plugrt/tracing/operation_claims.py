"""`OperationClaims`: the devices that operations of a program name, and the pmaps within it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from plugrt.execution.launches.replica_launch import InnerPmap
from plugrt.execution.placement.device_claims import Claim
from plugrt.stablehlo.bindings import hlo, ir
from plugrt.stablehlo.regions import operations_within

AnyClaim: TypeAlias = Claim | InnerPmap

_NAME = "plugrt.claims"


class OperationClaims:
    """The claims of a module that is being traced, by the operation that each belongs to.

    An operation has the numbers of its claims as an attribute until `remove_marks`. So an
    operation's claims go with it: JAX, too, looks at devices after it has removed unused equations.
    A nested pmap is a claim as well, of each of its operations.
    """

    def __init__(self) -> None:
        self._claims: list[AnyClaim] = []
        self._of_operations: set[int] = set()

    def add(self, claim: AnyClaim) -> None:
        """Adds a claim of the whole program."""
        self._claims.append(claim)

    def add_to(self, operation: ir.Operation, claims: Sequence[AnyClaim]) -> None:
        """Adds the claims of an operation."""
        if claims:
            _mark(operation, [*_marks(operation), *self._number(claims)])

    def add_to_value(self, value: ir.Value, claim: AnyClaim, location: ir.Location) -> ir.Value:
        """Returns a value that carries a claim for as long as it is used."""
        same = hlo.ReshapeOp(value.type, value, loc=location)
        self.add_to(same.operation, [claim])
        marked: ir.Value = same.result
        return marked

    def add_to_all(self, operations: Iterable[Any], claim: AnyClaim) -> None:
        """Adds a claim of each of some operations.

        Constants have none, since later operations may use them, too.
        """
        numbers = self._number([claim])
        for view in operations:
            if view.operation.name != "stablehlo.constant":
                _mark(view.operation, [*_marks(view.operation), *numbers])

    def adopt(self, functions: Sequence[object], claims: Sequence[AnyClaim]) -> Sequence[AnyClaim]:
        """Adds the claims of functions with marks, which came from another trace.

        Returns the claims that belong to that whole program and to no operation.
        """
        if not claims:
            return ()
        first = self._number(claims)[0]
        found: set[int] = set()
        for operation in _marked(functions):
            marks = _marks(operation)
            found.update(marks)
            _mark(operation, [first + i for i in marks])
        return [claim for i, claim in enumerate(claims) if i not in found]

    def left(self, module: ir.Module) -> tuple[AnyClaim, ...]:
        """Returns the claims of the operations in a module, and numbers these in the same order."""
        if not self._claims:
            return ()
        marked = [*_marked([module.operation])]
        numbers = {*range(len(self._claims))} - self._of_operations
        numbers.update(i for operation in marked for i in _marks(operation))
        order = {number: i for i, number in enumerate(sorted(numbers))}
        for operation in marked:
            _mark(operation, [order[i] for i in _marks(operation)])
        return tuple(self._claims[i] for i in order)

    def _number(self, claims: Sequence[AnyClaim]) -> range:
        """Adds claims of operations, and returns their numbers."""
        numbers = range(len(self._claims), len(self._claims) + len(claims))
        self._claims.extend(claims)
        self._of_operations.update(numbers)
        return numbers


def is_marked(operation: Any) -> bool:
    """Whether an operation has claims."""
    return _NAME in operation.attributes


def remove_marks(module: ir.Module) -> None:
    """Removes the attributes of claims in a module, and the operations that only carry them."""
    for operation in [*_marked([module.operation])]:
        del operation.attributes[_NAME]
        if operation.name == "stablehlo.reshape":
            [value], [same] = operation.operands, operation.results
            if value.type == same.type:
                same.replace_all_uses_with(value)
                operation.erase()


def _marked(operations: Sequence[Any]) -> Iterator[Any]:
    for each in operations:
        yield from (op for op in operations_within(each.operation) if _NAME in op.attributes)


def _marks(operation: Any) -> list[int]:
    return [*ir.DenseI64ArrayAttr(operation.attributes[_NAME])] if is_marked(operation) else []


def _mark(operation: Any, numbers: Sequence[int]) -> None:
    operation.attributes[_NAME] = ir.DenseI64ArrayAttr.get([*numbers], operation.context)
