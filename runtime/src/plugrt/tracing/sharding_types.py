"""`ShardingTypes`: how the values of a trace are divided over the Explicit axes of a mesh."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from plugrt.errors import ShardingTypeError
from plugrt.execution.shardings.abstract_mesh import AbstractMesh
from plugrt.execution.shardings.named_sharding import NamedSharding, explicit_part
from plugrt.execution.shardings.partition_spec import PartitionSpec
from plugrt.execution.shardings.shardy_text import sharding_body
from plugrt.stablehlo.bindings import ir
from plugrt.stablehlo.regions import operations_within
from plugrt.stablehlo.shardings import constrain
from plugrt.tracing.sharding_rules import Operation, Spec, axes_of, infer

_STATED = ("func.call", "sdy.manual_computation", "sdy.sharding_constraint", "stablehlo.composite")
"""Operations whose results have the types that they were given where they were made."""
_BRANCHES = ("stablehlo.case", "stablehlo.if")


class ShardingTypes:
    """The shardings in the types of a trace's values; of those alone that are divided."""

    def __init__(self, mesh: AbstractMesh) -> None:
        self.mesh = mesh
        """The mesh where the trace is now."""
        self._known: dict[ir.Value, NamedSharding] = {}
        self._settled: set[ir.Value] = set()

    def of(self, value: ir.Value | None, ndim: int) -> NamedSharding:
        """Returns the sharding in the type of a value."""
        found = None if value is None else self._known.get(value)
        return found or explicit_part(self.mesh, PartitionSpec(), ndim)

    def set(self, value: ir.Value, sharding: NamedSharding | None) -> None:
        """States the type of a value."""
        if sharding is None or (sharding.is_fully_replicated and not sharding.spec.axis_names):
            self._known.pop(value, None)
        else:
            self._known[value] = sharding

    def forget(self, operation: ir.Operation) -> None:
        """Forgets the values within an operation that goes: others may get their addresses."""
        for each in operations_within(operation):
            blocks = [block for region in each.regions for block in region.blocks]
            for value in (*each.results, *(a for block in blocks for a in block.arguments)):
                self._known.pop(value, None)
                self._settled.discard(value)

    def copy(self, value: ir.Value, source: ir.Value, other: ShardingTypes | None = None) -> None:
        """Gives a value the type of another one."""
        self.set(value, (other or self)._known.get(source))

    @contextmanager
    def within(self, mesh: AbstractMesh) -> Iterator[None]:
        """Sets the mesh for as long as the context lasts."""
        before, self.mesh = self.mesh, mesh
        try:
            yield
        finally:
            self.mesh = before

    def settle(self, value: ir.Value, location: Callable[[], ir.Location]) -> ir.Value:
        """Returns the result of an operation, constrained to the type that it has.

        Raises `ShardingTypeError` where the types of the operands leave it open.
        """
        if isinstance(value, ir.BlockArgument):
            return value
        op = value.owner
        if op.name in _STATED:
            return value
        self._settled.update(op.results)
        if not self._infer(op):
            return value
        sharding = self.of(value, _rank(value))
        return self.constrained(value, sharding, sharding, location())

    def constrained(
        self, value: ir.Value, sharding: NamedSharding, asked: NamedSharding, location: ir.Location
    ) -> ir.Value:
        """Returns a value of a type, divided as is ``asked``: also over axes that are not Explicit.

        Over those that ``asked`` leaves out the compiler divides it as it likes.
        """
        is_open = len(sharding.mesh.explicit_axes) < len(sharding.mesh.axis_names)
        body = sharding_body(asked, _rank(value), is_open)
        made = constrain(value, f"#sdy.sharding<{body}>", location)
        self.set(made, sharding)
        return made

    def _infer(self, op: Any) -> bool:
        """Sets the types of an operation's results; returns whether any value of it is divided."""
        if op.name in _BRANCHES:
            return self._infer_branches(op)
        if op.name == "stablehlo.while":
            return self._infer_loop(op)
        operands = list(op.operands)
        for operand in operands:
            self._catch_up(operand)
        found = [self._known.get(operand) for operand in operands]
        meshes = {one.mesh for one in found if one is not None}
        if not meshes:
            for result in op.results:
                self._known.pop(result, None)
            return False
        if len(meshes) > 1 or self.mesh not in meshes:
            raise ShardingTypeError(
                f"{op.name} is over {self.mesh!r}, and has operands over "
                f"{', '.join(map(repr, meshes - {self.mesh}))}: reshard them first"
            )
        specs = [_spec(one, _rank(operand)) for one, operand in zip(found, operands, strict=True)]
        free = [_is_constant(operand) for operand in operands]
        of = Operation(op, specs, free, self.mesh.shape)
        for result, spec in zip(op.results, infer(of), strict=True):
            self._state(result, spec, of)
        return True

    def _state(self, value: ir.Value, spec: Spec, of: Operation) -> None:
        names = [name for entry in spec for name in axes_of(entry)]
        if len(names) != len(set(names)):
            of.refuse(f"an axis would divide two dimensions of the result, {spec}")
        self.set(value, NamedSharding(self.mesh, PartitionSpec(*spec)))

    def _infer_branches(self, op: Any) -> bool:
        returned = [[*[*region.blocks[0].operations][-1].operands] for region in op.regions]
        divided = False
        for result, *values in zip(op.results, *returned, strict=True):
            found = {self.of(value, _rank(value)) for value in values}
            if len(found) > 1:
                specs = ", ".join(repr(one.spec) for one in found)
                raise ShardingTypeError(
                    f"the branches of a condition return arrays of different types: {specs}; "
                    "reshard one"
                )
            self.set(result, found.pop())
            divided |= result in self._known
        return divided

    def _infer_loop(self, op: Any) -> bool:
        """Gives results the types of the body's arguments, which `Carry` has checked."""
        for argument, result in zip(op.regions[1].blocks[0].arguments, op.results, strict=True):
            self.copy(result, argument)
        return any(result in self._known for result in op.results)

    def _catch_up(self, value: ir.Value) -> None:
        """Sets the type of a value that no tracer has been made of."""
        if isinstance(value, ir.BlockArgument) or value in self._settled:
            return
        op = value.owner
        self._settled.update(op.results)
        if op.name not in _STATED:
            self._infer(op)


def _spec(sharding: NamedSharding | None, ndim: int) -> Spec:
    return (None,) * ndim if sharding is None else tuple(sharding.spec)  # type: ignore[arg-type]


def _rank(value: ir.Value) -> int:
    return int(ir.RankedTensorType(value.type).rank)


def _is_constant(value: ir.Value, depth: int = 8) -> bool:
    """Whether a value is made of numbers alone: the compiler makes it in any parts."""
    if not depth or isinstance(value, ir.BlockArgument):
        return False
    op = value.owner
    if op.name in _STATED or op.regions:
        return False
    if op.name == "stablehlo.broadcast_in_dim" and not _rank(op.operands[0]):
        return True
    return all(_is_constant(operand, depth - 1) for operand in op.operands)
