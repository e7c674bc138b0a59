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
    if math.prod(shape) * dtype.itemsize > _MOST_BYTES or max(shape, default=0) > _MOST_BYTES:
        raise ResourceExhausted(
            f"an array of shape {tuple(shape)} and dtype {dtype.name} has more bytes than 63 bits "
            "can count"
        )


def tensor_type(shape: Sequence[int], dtype: np.dtype[np.generic]) -> ir.RankedTensorType:
    """Returns ``tensor<SHAPExDTYPE>`` in the current context."""
    check_size(shape, dtype)
    return ir.RankedTensorType.get(list(shape), element_type(dtype))


def ir_type_to_tensor_type(mlir_type: ir.Type) -> TensorType:
    """Returns the shape and dtype of a ranked tensor type with static dimensions."""
    if not isinstance(mlir_type, ir.RankedTensorType):
        raise UnsupportedDtype(f"{mlir_type} is not a ranked tensor type")
    if not mlir_type.has_static_shape:
        raise UnsupportedDtype(
            f"{mlir_type} has dynamic dimensions; refine the program to static shapes first"
        )
    shape, dtype = tuple(mlir_type.shape), ir_type_to_dtype(mlir_type.element_type)
    check_size(shape, dtype)
    return TensorType(shape, dtype)


def parameter_type(mlir_type: ir.Type) -> TensorType:
    """Returns the type of a program's parameter or result: an array's, or `TOKEN_TYPE`."""
    return TOKEN_TYPE if is_token(mlir_type) else ir_type_to_tensor_type(mlir_type)


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
