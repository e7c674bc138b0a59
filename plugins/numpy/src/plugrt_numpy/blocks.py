"""`BlockCompiler`: compiles a block of StableHLO to a Python function, a line per operation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from plugrt.stablehlo.bindings import ir
from plugrt_numpy import operation as operations
from plugrt_numpy.bodies import free_values
from plugrt_numpy.data_types import Array, Function
from plugrt_numpy.operation import Operation
from plugrt_numpy.source import FunctionSource, format_targets
from plugrt_numpy.table import TERMINATORS


class ModuleView(operations.ModuleView, Protocol):
    """The module's members that a block needs."""

    def constant(self, value: ir.Value) -> Array | None:
        """Returns the value of a constant; None if it is none."""

    def add_constants(self, operation: ir.Operation) -> bool:
        """Computes the results of an operation now, if they do not depend on arguments."""

    def is_joint(self, operation: ir.Operation) -> bool:
        """Whether an operation, or one within it, needs several devices at once."""

    def lower_joint(self, op: Operation) -> Function:
        """Returns the joint function of an operation."""


class BlockCompiler:
    """Makes the Python function of one block."""

    def __init__(
        self,
        module: ModuleView,
        block: ir.Block,
        name: str,
        captures: Sequence[ir.Value],
        *,
        joint: bool,
    ) -> None:
        self._module = module
        self._joint = joint
        self._operations = [view.operation for view in block.operations]
        self._names: dict[ir.Value, str] = {}
        parameters = [self._new(value) for value in [*block.arguments, *captures]]
        self._source = FunctionSource(name, ["active", *parameters] if joint else parameters)

    def compile(self) -> Function:
        *operations, end = self._operations
        if end.name not in TERMINATORS:
            Operation(end, self._module).refuse("control flow is by regions, not by branches")
        steps = [op for op in operations if not self._module.add_constants(op)]
        uses = [list(self._uses(op)) for op in steps]
        dead = self._dead_after(uses, end)
        for operation, used, gone in zip(steps, uses, dead, strict=True):
            self._add(operation, used, gone)
        results = [self._reference(value) for value in end.operands]
        self._source.add(f"return ({''.join(f'{r}, ' for r in results)})", "")
        return self._source.compile()

    def _add(self, operation: ir.Operation, used: list[ir.Value], gone: list[ir.Value]) -> None:
        op = Operation(operation, self._module)
        targets = [self._new(value) for value in operation.results]
        left = f"{format_targets(targets)} = " if targets else ""
        unused = [v for v in operation.results if not any(True for _ in v.uses)]
        dead = [self._names[value] for value in [*gone, *unused]]
        comment = f"{op.name} ({op.where})"
        if not self._joint:
            function = self._source.bind(self._module.lower(op), "f")
            arguments = ", ".join(map(self._reference, used))
            self._source.add(f"{left}{function}({arguments})", comment, dead)
        elif self._module.is_joint(operation):
            function = self._source.bind(self._module.lower_joint(op), "f")
            arguments = "".join(f", {self._reference(value)}" for value in used)
            self._source.add(f"{left}{function}(active{arguments})", comment, dead)
        else:
            self._source.add(f"{left}{self._each(op, used, len(targets))}", comment, dead)

    def _each(self, op: Operation, used: list[ir.Value], results: int) -> str:
        """Returns the expression that runs an operation for one device after the other."""
        function = self._source.bind(self._module.lower(op), "f")
        varying = [v for v in used if self._module.constant(v) is None]
        inner = {v: f"x{i}" for i, v in enumerate(varying)}
        arguments = ", ".join(inner.get(v) or self._constant(v) for v in used)
        names = ", ".join(inner.values())
        lists = ", ".join(self._names[v] for v in inner)
        if not inner:
            each = f"[{function}({arguments}) for _ in active]"
        elif len(inner) == 1:
            each = f"[{function}({arguments}) for {names} in {lists}]"
        else:
            each = f"[{function}({arguments}) for {names} in zip({lists})]"
        return each if results == 1 else f"zip(*{each})"

    def _uses(self, operation: ir.Operation) -> Iterator[ir.Value]:
        """Yields the operands of an operation, then the values that its regions capture."""
        yield from operation.operands
        seen: set[ir.Value] = set()
        for region in operation.regions:
            for value in free_values(region):
                if self._module.constant(value) is None and value not in seen:
                    seen.add(value)
                    yield value

    def _dead_after(
        self, uses: Sequence[Iterable[ir.Value]], end: ir.Operation
    ) -> list[list[ir.Value]]:
        """Returns for each step the values that nothing uses after it."""
        alive = set(end.operands)
        dead = []
        for used in reversed(uses):
            gone = []
            for value in used:
                if value not in alive and self._module.constant(value) is None:
                    gone.append(value)
                alive.add(value)
            dead.append(gone)
        return dead[::-1]

    def _new(self, value: ir.Value) -> str:
        name = self._names[value] = f"v{len(self._names)}"
        return name

    def _reference(self, value: ir.Value) -> str:
        """Returns the expression of a value: a variable, or a constant."""
        name = self._names.get(value)
        if name is not None:
            return name
        constant = self._constant(value)
        return f"[{constant}] * len(active)" if self._joint else constant

    def _constant(self, value: ir.Value) -> str:
        return self._source.bind(self._module.constant(value), "k")
