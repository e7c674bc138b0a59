"""`ModuleCompiler`: the functions and regions of a module, each made a Python function once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from plugrt.errors import Internal
from plugrt.interface import Handler
from plugrt.stablehlo.attributes import text_of
from plugrt.stablehlo.bindings import ir
from plugrt.stablehlo.regions import operations_within
from plugrt_numpy.blocks import BlockCompiler
from plugrt_numpy.bodies import RegionBody, free_values
from plugrt_numpy.data_types import Array, Function
from plugrt_numpy.devices import Grid
from plugrt_numpy.failures import lower
from plugrt_numpy.operation import Operation
from plugrt_numpy.operations.constants import constant_value
from plugrt_numpy.partitions import MANUAL_COMPUTATION, read_symbols
from plugrt_numpy.table import (
    ELEMENTWISE,
    FOLDED,
    JOINT,
    TERMINATORS,
    find_joint_lowering,
    find_lowering,
)

_MOST_FOLDED = 1 << 16
"""The elements of a result that is computed when the program is compiled."""


class ModuleCompiler:
    """Makes Python functions of a module's functions and regions.

    There are two forms. The single form, for one device, has arrays as arguments and results. The
    joint form, for collectives, runs several devices in step: its arguments are the devices, then
    for each value the list of the devices' arrays. Each returns a tuple of results.
    """

    def __init__(
        self,
        module: ir.Module,
        grid: Grid,
        *,
        check: bool = False,
        handlers: Mapping[str, Handler] = MappingProxyType({}),
        constants: dict[ir.Value, Array] | None = None,
    ) -> None:
        """``constants`` may be another compiler's, of the same module, to share them."""
        self.grid = grid
        self.handlers = handlers
        self._check = check
        self.symbols = read_symbols(module)
        self._constants = {} if constants is None else constants
        self._functions: dict[tuple[str, bool], Function] = {}
        self._joint: dict[str, bool] = {}

    def function(self, name: str) -> Function:
        return self._function(name, joint=False)

    def joint_function(self, name: str) -> Function:
        return self._function(name, joint=True)

    def body(self, region: ir.Region) -> RegionBody:
        block = region.blocks[0]
        run = self._compile(block, "region", self.captures(region), joint=False)
        return RegionBody(block, run, self._is_elementwise(block))

    def joint_body(self, region: ir.Region) -> Function:
        return self._compile(region.blocks[0], "region", self.captures(region), joint=True)

    def function_is_joint(self, name: str) -> bool:
        """Whether a function, or one that it calls, exchanges data between devices."""
        if name not in self._joint:
            self._joint[name] = self._holds_joint(self.symbols[name].regions[0])
        return self._joint[name]

    @property
    def is_written_for_parts(self) -> bool:
        """Whether ``main`` is written for one device's parts, and not for whole arrays."""
        return self.function_is_joint("main") and not (self.grid.partitions > 1 and self._divides)

    @cached_property
    def _divides(self) -> bool:
        """Whether a manual computation divides values that are whole in the rest of the module."""
        return any(_holds(symbol, MANUAL_COMPUTATION) for symbol in self.symbols.values())

    @cached_property
    def _nests(self) -> bool:
        """Whether a manual computation may be within another: there, or in a function."""
        return any(
            _holds(inner, MANUAL_COMPUTATION)
            for name, symbol in self.symbols.items()
            for outer in operations_within(symbol)
            if outer.name == MANUAL_COMPUTATION or (name != "main" and outer == symbol)
            for region in outer.regions
            for inner in _operations_of(region)
        )

    def is_joint(self, operation: ir.Operation) -> bool:
        """Whether an operation, or one within it, needs several devices at once."""
        if operation.name in JOINT:
            return True
        if operation.name == MANUAL_COMPUTATION:  # its partitions are its own, or the outer one's
            return self.grid.replicas > 1 or self._nests
        called = called_symbol(operation)
        if called and self.function_is_joint(called):
            return True
        return any(map(self._holds_joint, operation.regions))

    def _holds_joint(self, region: ir.Region) -> bool:
        return any(self.is_joint(op.operation) for block in region for op in block.operations)

    def _function(self, name: str, *, joint: bool) -> Function:
        key = (name, joint)
        if key not in self._functions:
            block = self.symbols[name].regions[0].blocks[0]
            self._functions[key] = self._compile(block, name, [], joint=joint)
        return self._functions[key]

    def captures(self, region: ir.Region) -> list[ir.Value]:
        return [v for v in free_values(region) if v not in self._constants]

    def _compile(
        self, block: ir.Block, name: str, captures: Sequence[ir.Value], *, joint: bool
    ) -> Function:
        return BlockCompiler(self, block, name, captures, joint=joint).compile()

    def constant(self, value: ir.Value) -> Array | None:
        """Returns the value of a constant; None if it is none."""
        return self._constants.get(value)

    def add_constants(self, operation: ir.Operation) -> bool:
        """Computes the results of an operation now, if they do not depend on arguments."""
        if operation.name == "stablehlo.constant":
            op = Operation(operation, self)
            self._constants[operation.results[0]] = constant_value(op)
            return True
        if operation.name not in FOLDED:
            return False
        operands = [self._constants.get(value) for value in operation.operands]
        if any(value is None for value in operands):
            return False
        op = Operation(operation, self)
        if -1 in op.shape or math.prod(op.shape) > _MOST_FOLDED:
            return False
        with np.errstate(all="ignore"):
            self._constants[operation.results[0]] = np.asarray(self.lower(op)(*operands))
        return True

    def lower(self, op: Operation) -> Function:
        """Returns the function of an operation, for one device."""
        function = lower(find_lowering(op), op)
        return check_results(op, function) if self._check else function

    def lower_joint(self, op: Operation) -> Function:
        """Returns the joint function of an operation."""
        return lower(find_joint_lowering(op), op)

    def _is_elementwise(self, block: ir.Block) -> bool:
        for view in block.operations:
            operation = view.operation
            called = called_symbol(operation) if operation.name == "func.call" else None
            if called:
                if not self._is_elementwise(self.symbols[called].regions[0].blocks[0]):
                    return False
            elif operation.name not in ELEMENTWISE and operation.name not in TERMINATORS:
                return False
            if any(_rank(value) for value in operation.results):
                return False
        return True


def _holds(operation: ir.Operation, name: str) -> bool:
    """Whether an operation is of this name, or one within it."""
    return any(inner.name == name for inner in operations_within(operation))


def _operations_of(region: ir.Region) -> list[ir.Operation]:
    """Returns the operations of a region's blocks, without those within them."""
    return [view.operation for block in region for view in block.operations]


def called_symbol(operation: ir.Operation) -> str | None:
    """Returns the function that a call or a composite names; None for other operations."""
    key = {"func.call": "callee", "stablehlo.composite": "decomposition"}.get(operation.name)
    return text_of(operation.attributes[key]) if key else None


def check_results(op: Operation, function: Function) -> Function:
    """Returns a function that also compares its results with the types that MLIR inferred."""
    expected, what = op.result_types, f"{op.name} ({op.where})"

    def run(*arguments: Any) -> Any:
        results = function(*arguments)
        for found, wanted in zip(
            [results] if len(expected) == 1 else results, expected, strict=True
        ):
            if wanted is None or -1 in wanted.shape:
                continue
            # Scalars of a region are arrays where it is run for many elements at once.
            same = np.shape(found) == wanted.shape or not wanted.shape
            if not same or np.asarray(found).dtype != wanted.dtype:
                raise Internal(
                    f"{what} gave {np.asarray(found).dtype}{np.shape(found)}; its type is {wanted}"
                )
        return results

    return run


def _rank(value: ir.Value) -> int:
    return value.type.rank if isinstance(value.type, ir.RankedTensorType) else 0
