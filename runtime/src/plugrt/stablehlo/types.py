"""NumPy dtypes and StableHLO element types, and tensor types made of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from plugrt.errors import ResourceExhausted, UnsupportedDtype
from plugrt.interface import TensorType
from plugrt.stablehlo.bindings import ir


def _integer(width: int, signed: bool) -> Callable[[], ir.Type]:
    if signed:
        return lambda: ir.IntegerType.get_signless(width)
    return lambda: ir.IntegerType.get_unsigned(width)


_FLOATS: dict[str, str] = {
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "bfloat16": "bf16",
    "float8_e3m4": "f8E3M4",
    "float8_e4m3": "f8E4M3",
    "float8_e4m3fn": "f8E4M3FN",
    "float8_e4m3b11fnuz": "f8E4M3B11FNUZ",
    "float8_e4m3fnuz": "f8E4M3FNUZ",
    "float8_e5m2": "f8E5M2",
    "float8_e5m2fnuz": "f8E5M2FNUZ",
    "float8_e8m0fnu": "f8E8M0FNU",
    "float4_e2m1fn": "f4E2M1FN",
}
_NAMES: dict[str, str] = {
    "bool": "i1",
    "complex64": "complex<f32>",
    "complex128": "complex<f64>",
    **{f"int{w}": f"i{w}" for w in (2, 4, 8, 16, 32, 64)},
    **{f"uint{w}": f"ui{w}" for w in (2, 4, 8, 16, 32, 64)},
    **_FLOATS,
}


def _dtype(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name, None) or name)


_MOST_BYTES = 2**63 - 1

_DTYPES: dict[str, np.dtype[Any]] = {mlir: _dtype(name) for name, mlir in _NAMES.items()}


@cache
def element_name(dtype: np.dtype[Any]) -> str:
    """Returns StableHLO's spelling of a dtype, such as ``f32`` or ``ui8``.

    Raises `UnsupportedDtype` for a dtype that StableHLO lacks.
    """
    name = _NAMES.get(dtype.name)
    if name is None or dtype.names or dtype.hasobject:
        raise UnsupportedDtype(
            f"dtype {dtype!r} has no StableHLO element type; arrays hold booleans, integers, "
            "floats (also ml_dtypes') and complex numbers"
        )
    return name


def element_type(dtype: np.dtype[Any]) -> ir.Type:
    """Returns the MLIR element type of a dtype, in the current context."""
    return ir.Type.parse(element_name(dtype))


def dtype_of(element: ir.Type) -> np.dtype[Any]:
    """Returns the dtype of an MLIR element type; `UnsupportedDtype` for tokens and the like."""
    dtype = _DTYPES.get(str(element))
    if dtype is None:
        raise UnsupportedDtype(f"the MLIR type {element} has no NumPy dtype")
    return dtype


def check_size(shape: Sequence[int], dtype: np.dtype[Any]) -> None:
    """Raises `ResourceExhausted` for an array whose bytes 63 bits cannot count.

    No device has room for it, and XLA (jaxlib 0.10) ends the process over it.
    """
    if math.prod(shape) * dtype.itemsize > _MOST_BYTES or max(shape, default=0) > _MOST_BYTES:
        raise ResourceExhausted(
            f"an array of shape {tuple(shape)} and dtype {dtype.name} has more bytes than 63 bits "
            "can count"
        )


def tensor_type(shape: Sequence[int], dtype: np.dtype[Any]) -> ir.RankedTensorType:
    """Returns ``tensor<SHAPExDTYPE>`` in the current context."""
    check_size(shape, dtype)
    return ir.RankedTensorType.get(list(shape), element_type(dtype))


def tensor_type_of(mlir_type: ir.Type) -> TensorType:
    """Returns the shape and dtype of a ranked tensor type with static dimensions."""
    if not isinstance(mlir_type, ir.RankedTensorType):
        raise UnsupportedDtype(f"{mlir_type} is not a ranked tensor type")
    if not mlir_type.has_static_shape:
        raise UnsupportedDtype(
            f"{mlir_type} has dynamic dimensions; refine the program to static shapes first"
        )
    shape, dtype = tuple(mlir_type.shape), dtype_of(mlir_type.element_type)
    check_size(shape, dtype)
    return TensorType(shape, dtype)
