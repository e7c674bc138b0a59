"""MLIR types of NumPy dtypes and shapes; the compare types of ``stablehlo.compare``."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from plugrt.errors import ResourceExhausted, UnsupportedDtype
from plugrt.interface import TOKEN_TYPE, TensorType
from plugrt.native.known_dtypes import KEY_DTYPES, buffer_type, is_key_dtype
from plugrt.stablehlo.bindings import hlo, ir
from plugrt.stablehlo.element_names import ELEMENT_NAMES, element_name
from plugrt.stablehlo.regions import operations_within


def _dtype(name: str) -> np.dtype[np.generic]:
    return np.dtype(getattr(ml_dtypes, name, None) or name)


_MOST_BYTES = 2**63 - 1

_DTYPES: dict[str, np.dtype[np.generic]] = {
    mlir: _dtype(name) for name, mlir in ELEMENT_NAMES.items()
}


def element_type(dtype: np.dtype[np.generic]) -> ir.Type:
    """Returns the MLIR element type of a dtype, in the current context."""
    return ir.Type.parse(element_name(dtype))


def ir_type_to_dtype(element: ir.Type) -> np.dtype[np.generic]:
    """Returns the dtype of an MLIR element type; `UnsupportedDtype` for tokens and the like."""
    dtype = _DTYPES.get(str(element))
    if dtype is None:
        raise UnsupportedDtype(f"the MLIR type {element} has no NumPy dtype")
    return dtype


def check_size(shape: Sequence[int], dtype: np.dtype[np.generic]) -> None:
    """Raises `ResourceExhausted` for an array whose bytes 63 bits cannot count.

    No device could hold it, and XLA (jaxlib 0.10) aborts the process.
    """
    # Workaround for xla-shape-overflow
    if math.prod(shape) * dtype.itemsize > _MOST_BYTES or max(shape, default=0) > _MOST_BYTES:
        raise ResourceExhausted(
            f"an array of shape {tuple(shape)} and dtype {dtype.name} has more bytes than 63 bits "
            "can count"
        )


def tensor_type(
    shape: Sequence[int], dtype: np.dtype[np.generic], where: ir.Location | None = None
) -> ir.RankedTensorType:
    """Returns ``tensor<SHAPExDTYPE>`` in the context of a location, or in the current one.

    Keys are ``tensor<SHAPExWORDSxui32, NAME>`` until `drop_key_types`: the name of their dtype
    distinguishes them from numbers in every type of a module.
    """
    check_size(shape, dtype)
    context = where and where.context
    sizes, held = buffer_type(tuple(shape), dtype)
    element = ir.Type.parse(element_name(held), context)
    mark = ir.StringAttr.get(dtype.name, context) if is_key_dtype(dtype) else None
    return ir.RankedTensorType.get(list(sizes), element, mark, loc=where)


def ir_type_to_tensor_type(mlir_type: ir.Type, *, dynamic: bool = False) -> TensorType:
    """Returns the shape and dtype of a ranked tensor type; with ``dynamic``, -1 for unknown sizes.

    Raises `UnsupportedDtype` for other types, and for dynamic dimensions without ``dynamic``.
    """
    if not isinstance(mlir_type, ir.RankedTensorType):
        raise UnsupportedDtype(f"{mlir_type} is not a ranked tensor type")
    if not mlir_type.has_static_shape:
        if dynamic:
            sizes = (
                -1 if mlir_type.is_dynamic_dim(i) else n for i, n in enumerate(mlir_type.shape)
            )
            return TensorType(tuple(sizes), ir_type_to_dtype(mlir_type.element_type))
        raise UnsupportedDtype(
            f"{mlir_type} has dynamic dimensions; refine the program to static shapes first"
        )
    shape = tuple(mlir_type.shape)
    if (mark := mlir_type.encoding) is not None and isinstance(mark, ir.StringAttr):
        return TensorType(shape[:-1], KEY_DTYPES[ir.StringAttr(mark).value])  # type: ignore[arg-type]
    dtype = ir_type_to_dtype(mlir_type.element_type)
    check_size(shape, dtype)
    return TensorType(shape, dtype)


def drop_key_types(module: ir.Module) -> None:
    """Changes the types of key arrays to their words' types, in place."""
    plain: dict[ir.Type, ir.Type] = {}

    def settle(value: ir.Value) -> None:
        found = value.type
        if isinstance(found, ir.RankedTensorType) and found.encoding is not None:
            if found not in plain:
                plain[found] = ir.RankedTensorType.get([*found.shape], found.element_type)
            value.set_type(plain[found])

    with module.context, ir.Location.unknown():
        for op in [*operations_within(module.operation)]:
            for result in op.results:
                settle(result)
            for region in op.regions:
                for block in region.blocks:
                    for argument in block.arguments:
                        settle(argument)
        drop_casts(module)
        for op in [*operations_within(module.operation)]:
            if op.name == "func.func" and len(op.regions[0].blocks):
                block = op.regions[0].blocks[0]
                returned = [*block.operations][-1].operands
                types = [a.type for a in block.arguments], [value.type for value in returned]
                op.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*types))


KEY_CAST = "builtin.unrealized_conversion_cast"
"""The operation that converts between keys and their words, or between types of one value."""


def drop_casts(module: ir.Module) -> None:
    """Removes casts that do not change the type."""
    for op in [*operations_within(module.operation)]:
        if op.name == KEY_CAST and len(op.operands) and op.results[0].type == op.operands[0].type:
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()


def parameter_type(mlir_type: ir.Type, *, dynamic: bool = False) -> TensorType:
    """Returns the type of a program's parameter or result: an array's, or `TOKEN_TYPE`."""
    return TOKEN_TYPE if is_token(mlir_type) else ir_type_to_tensor_type(mlir_type, dynamic=dynamic)


def is_token(mlir_type: ir.Type) -> bool:
    """Whether a value of the type is a token, not an array."""
    return str(mlir_type) == "!stablehlo.token"


_KINDS = {"i1": "UNSIGNED", "ui": "UNSIGNED", "i": "SIGNED"}


def compare_attributes(
    dtype: np.dtype[np.generic], direction: str, *, total: bool = False
) -> dict[str, Any]:
    """Returns the attributes of ``stablehlo.compare`` for operands of a dtype.

    ``direction`` is one of EQ NE LT LE GT GE; ``total`` orders all floats, NaNs included.
    """
    # Workaround for xla-unsigned-constants: the compare type is optional in StableHLO, but without
    # it XLA may fold signed constants as unsigned, so that ``-1 < 0`` is false.
    name = element_name(dtype)
    letters = name if name == "i1" else name.rstrip("0123456789")
    compare_type = "TOTALORDER" if total else _KINDS.get(letters, "FLOAT")
    return {
        "comparison_direction": hlo.ComparisonDirectionAttr.get(direction),
        "compare_type": hlo.ComparisonTypeAttr.get(compare_type),
    }


def state_compare_types(module: ir.Module) -> None:
    """States the compare type of each comparison of signed integers that lacks it, in place.

    jaxlib's pass that lowers CHLO leaves it out, as in ``chlo.mulhi``.
    """
    # Workaround for xla-unsigned-constants.
    with module.context:
        signed = hlo.ComparisonTypeAttr.get("SIGNED")
        for op in operations_within(module.operation):
            if op.name != "stablehlo.compare" or "compare_type" in op.attributes:
                continue
            if re.fullmatch(r"i\d{1,2}(?<!i1)", str(op.operands[0].type.element_type)):
                op.attributes["compare_type"] = signed
