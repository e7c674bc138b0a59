"""Reads attributes, also if jaxlib's bindings have no class for the value."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from plugrt.errors import ProgramError
from plugrt.stablehlo.bindings import ir

_VALUE = re.compile(r"<\{value = dense<([^>]*)>")


def attribute_names(operation: Any) -> list[str]:
    """Returns the names of an operation's attributes.

    Iteration yields names in jaxlib 0.10.2, attributes in some other versions.
    """
    # Workaround for jaxlib-complex-attribute: never by index, which ends the process at one that
    # jaxlib has no class for, such as ``dense<(1.0, 2.0)>``.
    return [each if isinstance(each, str) else each.name for each in operation.attributes]


def find_attribute(operation: Any, name: str) -> Any:
    """Returns an attribute; None where it is missing, or the bindings have no class for it."""
    if name not in operation.attributes:
        return None
    try:
        return operation.attributes[name]
    except TypeError:  # Workaround for jaxlib-complex-attribute
        return None


def text_of(attribute: Any) -> str:
    """Returns the text of a string or symbol; raises `ProgramError` for one that is not UTF-8."""
    try:
        return str(attribute.value)
    except RuntimeError as error:  # nanobind's
        raise ProgramError(f"the program has a name that is not UTF-8: {attribute}") from error


def python_value(attribute: object) -> object:
    """Returns an attribute as a Python value: numbers, text, lists, dicts, NumPy arrays.

    Returns MLIR's text of an attribute that has no such value.
    """
    match attribute:
        case ir.BoolAttr() | ir.IntegerAttr() | ir.FloatAttr() | ir.StringAttr():
            return attribute.value
        case ir.ArrayAttr():
            return [python_value(each) for each in attribute]
        case ir.DictAttr():
            return {each.name: python_value(each.attr) for each in attribute}
        case ir.DenseI64ArrayAttr() | ir.DenseI32ArrayAttr() | ir.DenseBoolArrayAttr():
            return list(attribute)
        case ir.DenseElementsAttr():
            return _array(attribute)
        case _:
            return str(attribute)


def _array(attribute: object) -> object:
    try:
        return np.array(attribute)
    except (TypeError, ValueError, RuntimeError):  # its element type has no buffer format in Python
        return str(attribute)


def symbol_of(operation: object) -> str | None:
    """Returns the name of a function or another symbol; None where an operation has none."""
    # Only operations of unknown dialects may have such an attribute of another type.
    name = find_attribute(operation, "sym_name")
    return text_of(name) if isinstance(name, ir.StringAttr) else None


def constant_literal(constant: ir.Operation, most: int | None = None) -> str:
    """Returns the text inside ``dense<...>`` of a ``stablehlo.constant``, as MLIR prints it.

    Empty for more than ``most`` elements, and for a value that MLIR prints in another form.
    """
    # The generic form puts the value first: other attributes of a program may contain any text.
    found = _VALUE.search(constant.get_asm(print_generic_op_form=True, large_elements_limit=most))
    return found[1] if found else ""
