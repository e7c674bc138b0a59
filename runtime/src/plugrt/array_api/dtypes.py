"""The namespace's dtypes (`float32`, `bfloat16`…) and the parser of ``dtype`` arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from plugrt.errors import UnsupportedDtype
from plugrt.execution.arrays.host_data import check_dtype
from plugrt.native.known_dtypes import is_key_dtype
from plugrt.settings.declarations import config
from plugrt.tracing.promotion import default_complex, default_float, default_int

bool = np.dtype(np.bool_)
int8 = np.dtype(np.int8)
int16 = np.dtype(np.int16)
int32 = np.dtype(np.int32)
int64 = np.dtype(np.int64)
uint8 = np.dtype(np.uint8)
uint16 = np.dtype(np.uint16)
uint32 = np.dtype(np.uint32)
uint64 = np.dtype(np.uint64)
float32 = np.dtype(np.float32)
float64 = np.dtype(np.float64)
complex64 = np.dtype(np.complex64)
complex128 = np.dtype(np.complex128)

# Beyond the standard.
float16 = np.dtype(np.float16)
bfloat16 = np.dtype(ml_dtypes.bfloat16)
float8_e3m4 = np.dtype(ml_dtypes.float8_e3m4)
float8_e4m3 = np.dtype(ml_dtypes.float8_e4m3)
float8_e4m3fn = np.dtype(ml_dtypes.float8_e4m3fn)
float8_e4m3fnuz = np.dtype(ml_dtypes.float8_e4m3fnuz)
float8_e4m3b11fnuz = np.dtype(ml_dtypes.float8_e4m3b11fnuz)
float8_e5m2 = np.dtype(ml_dtypes.float8_e5m2)
float8_e5m2fnuz = np.dtype(ml_dtypes.float8_e5m2fnuz)
float8_e8m0fnu = np.dtype(ml_dtypes.float8_e8m0fnu)
int4 = np.dtype(ml_dtypes.int4)
uint4 = np.dtype(ml_dtypes.uint4)

_NARROW: dict[np.dtype[Any], np.dtype[Any]] = {
    int64: int32,
    uint64: uint32,
    float64: float32,
    complex128: complex64,
}
_PYTHON: dict[object, Callable[[], np.dtype[Any]]] = {
    int: default_int,
    float: default_float,
    complex: default_complex,
}


def as_dtype(dtype: Any) -> np.dtype[Any]:
    """Returns the dtype that a ``dtype`` argument means, as devices store it.

    Python's ``int``, ``float`` and ``complex`` mean the default dtype of their kind. 64 bits become
    32 if ``config.enable_x64`` is False. Raises `UnsupportedDtype`.
    """
    if is_key_dtype(dtype):
        return dtype  # type: ignore[return-value]
    default = _PYTHON.get(dtype) if isinstance(dtype, type) else None
    if default is not None:
        return default()
    try:
        result: np.dtype[Any] = np.dtype(dtype)
    except TypeError as error:
        raise UnsupportedDtype(
            f"{dtype!r} is not a dtype; take one of plugrt.array_api's, such as float32"
        ) from error
    check_dtype(result, "the dtype argument")
    return _NARROW.get(result, result) if config.enable_x64 is False else result
