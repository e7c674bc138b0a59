"""StableHLO's spelling of dtypes and array types; needs no bindings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from plugrt.errors import UnsupportedDtype

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
ELEMENT_NAMES: dict[str, str] = {
    "bool": "i1",
    "complex64": "complex<f32>",
    "complex128": "complex<f64>",
    **{f"int{w}": f"i{w}" for w in (2, 4, 8, 16, 32, 64)},
    **{f"uint{w}": f"ui{w}" for w in (2, 4, 8, 16, 32, 64)},
    **_FLOATS,
}


@cache
def element_name(dtype: np.dtype[np.generic]) -> str:
    """Returns StableHLO's spelling of a dtype, such as ``f32`` or ``ui8``.

    Raises `UnsupportedDtype` for a dtype that StableHLO lacks.
    """
    name = ELEMENT_NAMES.get(dtype.name)
    if name is None or dtype.names or dtype.hasobject:
        raise UnsupportedDtype(
            f"dtype {dtype!r} has no StableHLO element type; arrays hold booleans, integers, "
            "floats (also ml_dtypes') and complex numbers"
        )
    return name


def tensor_name(shape: Sequence[int], dtype: np.dtype[np.generic]) -> str:
    """Returns StableHLO's spelling of an array's type, such as ``tensor<2x3xf32>``."""
    return f"tensor<{'x'.join([*map(str, shape), element_name(dtype)])}>"
