"""`OperationClaims`: the devices that operations of a program name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from plugrt.execution.placement.device_claims import Claim
from plugrt.stablehlo.bindings import hlo, ir
from plugrt.stablehlo.regions import operations_within

_NAME = "plugrt.claims"


class OperationClaims:
    """The claims of a module that is being traced, by the operation that each belongs to.

    An operation has the numbers of its claims as an attribute until `remove_marks`. So a claim is
    gone with its operation, as JAX looks at devices after it has removed unused equations.
    """

    def __init__(self) -> None:
        self._claims: list[Claim] = []
        self._of_operations: set[int] = set()

    def __len__(self) -> int:
        return len(self._claims)

    def __iter__(self) -> Iterator[Claim]:
        return iter(self._claims)

    def add(self, claim: Claim) -> None:
        """Adds a claim of the whole program."""
        self._claims.append(claim)

    def add_to(self, operation: ir.Operation, claims: Sequence[Claim]) -> None:
        """Adds the claims of an operation."""
        if claims:
            numbers = range(len(self._claims), len(self._claims) + len(claims))
            self._claims.extend(claims)
            self._of_operations.update(numbers)
            array = ir.DenseI64ArrayAttr.get([*numbers], operation.context)
            operation.attributes[_NAME] = array

    def add_to_value(self, value: ir.Value, claim: Claim, location: ir.Location) -> ir.Value:
        """Returns a value that has a claim for as long as it is used."""
        same = hlo.ReshapeOp(value.type, value, loc=location)
        self.add_to(same.operation, [claim])
        marked: ir.Value = same.result
        return marked

    def remove_marks(self, main: ir.Operation) -> tuple[Claim, ...]:
        """Removes the attributes in ``main``, and returns the claims of the operations there."""
        if not self._claims:
            return ()
        left = {*range(len(self._claims))} - self._of_operations
        for operation in [*operations_within(main)]:
            if _NAME not in operation.attributes:
                continue
            left.update(ir.DenseI64ArrayAttr(operation.attributes[_NAME]))
            del operation.attributes[_NAME]
            if operation.name == "stablehlo.reshape":
                operation.results[0].replace_all_uses_with(operation.operands[0])
                operation.erase()
        return tuple(self._claims[i] for i in sorted(left))
