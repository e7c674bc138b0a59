"""`Operation`: an operation of a module for lowerings to read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NoReturn, Protocol

from plugrt.errors import Unimplemented, UnsupportedDtype
from plugrt.interface import Handler, TensorType
from plugrt.stablehlo.attributes import text_of
from plugrt.stablehlo.bindings import ir
from plugrt.stablehlo.diagnostics import file_and_line
from plugrt.stablehlo.replica_groups import read_table
from plugrt.stablehlo.types import check_size, ir_type_to_dtype
from plugrt_numpy.data_types import Dtype, Function
from plugrt_numpy.devices import Grid

Lowering = Callable[["Operation"], Function]
"""Makes the function of an operation.

It returns the result for the operands, or a tuple if there is not exactly one. All attributes and
types are evaluated beforehand.
"""

_MOST_DIMENSIONS = 64
_LAST_WORD = re.compile(r"(\w+)>*$")


class Body(Protocol):
    """A region of an operation, compiled."""

    block: Any
    elementwise: bool
    """Whether it has elementwise operations only: then it accepts arrays of any one shape."""

    def call(self, *arguments: Any) -> tuple[Any, ...]:
        """Runs it on values of one device; captured values follow the block's arguments."""


class ModuleView(Protocol):
    """The module's members that a lowering needs."""

    grid: Grid
    handlers: Mapping[str, Handler]
    """The handlers that a host registered for custom calls, by target."""

    def function(self, name: str) -> Function:
        """Returns a function of the module, for one device; it returns a tuple."""

    def body(self, region: ir.Region) -> Body:
        """Returns a compiled region, for one device."""

    def joint_function(self, name: str) -> Function:
        """Returns a function over several devices; its arguments are these and lists of values."""

    def joint_body(self, region: ir.Region) -> Function:
        """Returns a region in the form of `joint_function`."""

    def lower(self, op: Operation) -> Function:
        """Returns the function of an operation, for one device."""

    def captures(self, region: ir.Region) -> list[ir.Value]:
        """Returns the values from around a region that it uses, in order; no constants."""

    @property
    def symbols(self) -> dict[str, ir.Operation]:
        """The functions and meshes of the module by name."""


class Operation:
    """An operation: its types, its attributes in Python's types, and its regions.

    It is read while a program is compiled and not afterwards: the functions that lowerings return
    hold neither it nor another object of the bindings, so that the module is freed.
    """

    def __init__(self, operation: ir.Operation, module: ModuleView) -> None:
        self.ir = operation
        self.module = module
        self.name: str = operation.name
        self.where = _where(operation.location)
        """The source line of the operation, or its location as MLIR writes it."""
        self._bodies: dict[int, Body] = {}

    def refuse(self, reason: str) -> NoReturn:
        """Raises `Unimplemented` with the operation's name and location."""
        raise Unimplemented(f"the NumPy backend cannot run {self.name} ({self.where}): {reason}")

    @cached_property
    def operand_types(self) -> list[Any]:
        """The type of each operand, as `result_types`."""
        return [self._type(value.type) for value in self.ir.operands]

    @cached_property
    def result_types(self) -> list[Any]:
        """The `TensorType` of each result; None for tokens, tuples and dynamic shapes."""
        return [self._type(value.type) for value in self.ir.results]

    def _type(self, found: ir.Type) -> TensorType | None:
        if not isinstance(found, ir.RankedTensorType):
            return None
        shape = (
            found.shape if found.has_static_shape else [_size(found, i) for i in range(found.rank)]
        )
        kind = TensorType(tuple(shape), self._dtype(found.element_type))
        if len(kind.shape) > _MOST_DIMENSIONS:
            self.refuse(f"NumPy's arrays have {_MOST_DIMENSIONS} dimensions at most, not {found}")
        check_size(kind.shape, kind.dtype)
        return kind

    def _dtype(self, element: ir.Type) -> Dtype:
        try:
            return ir_type_to_dtype(element)
        except UnsupportedDtype:
            reason = (
                "quantised types are not supported"
                if "quant" in str(element)
                else (f"the element type {element} has no NumPy dtype")
            )
            self.refuse(reason)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first result."""
        shape: tuple[int, ...] = self.result_types[0].shape
        return shape

    @property
    def dtype(self) -> Dtype:
        """The dtype of the first result."""
        dtype: Dtype = self.result_types[0].dtype
        return dtype

    def has(self, name: str) -> bool:
        """Whether the operation has an attribute."""
        return name in self.ir.attributes

    def attribute(self, name: str) -> Any:
        """Returns an attribute as the bindings give it."""
        return self.ir.attributes[name]

    def ints(self, name: str, default: Sequence[int] = ()) -> tuple[int, ...]:
        """Returns an attribute that is a list of integers (or booleans, as 0 and 1)."""
        return tuple(map(int, self.attribute(name))) if self.has(name) else tuple(default)

    def table(self, name: str) -> list[list[int]]:
        """Returns a two-dimensional attribute of integers, row by row; [] where it is missing."""
        if not self.has(name):
            return []
        return read_table(self.attribute(name))

    def integer(self, name: str, default: int = 0) -> int:
        """Returns an integer attribute."""
        return int(self.attribute(name).value) if self.has(name) else default

    def flag(self, name: str, default: bool = False) -> bool:
        """Returns a boolean attribute."""
        return bool(self.attribute(name).value) if self.has(name) else default

    def string(self, name: str, default: str = "") -> str:
        """Returns an attribute that is a string or a symbol."""
        return text_of(self.attribute(name)) if self.has(name) else default

    def word(self, name: str, default: str = "") -> str:
        """Returns the value of an enumeration, such as ``LT``."""
        if not self.has(name):
            return default
        found = _LAST_WORD.search(str(self.attribute(name)))
        return found[1] if found else default

    def body(self, index: int = 0) -> Body:
        """Returns a region, compiled for one device."""
        if index not in self._bodies:
            self._bodies[index] = self.module.body(self.ir.regions[index])
        return self._bodies[index]

    def captured_places(self) -> list[list[int]]:
        """Returns for each region which of the captured values it uses.

        They follow the operands: the values from outside of the regions, each once.
        """
        captures = [self.module.captures(region) for region in self.ir.regions]
        order: dict[ir.Value, int] = {}
        return [[order.setdefault(value, len(order)) for value in own] for own in captures]


def _where(location: ir.Location) -> str:
    found = file_and_line(location)
    return ":".join(found) if found else str(location)


def _size(found: ir.RankedTensorType, dimension: int) -> int:
    """Returns the size of a dimension; -1 for a dynamic one."""
    return -1 if found.is_dynamic_dim(dimension) else int(found.get_dim_size(dimension))
