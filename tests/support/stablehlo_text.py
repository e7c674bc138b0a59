"""Random arguments of StableHLO programs, and the comparison of their results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from plugrt_sdk.testing.program_text import named_dtype

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NARROW = ("int4", "uint4")
FLOATS = ("float16", "bfloat16", "float32", "float64")
EIGHTS = ("float8_e4m3fn", "float8_e5m2")
COMPLEX = ("complex64", "complex128")


def sample(rng: np.random.Generator, shape: Sequence[int], name: str) -> np.ndarray[Any, Any]:
    """Returns random values of a dtype: integers of its range, floats with special ones."""
    dtype = named_dtype(name)
    if name == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if "int" in name:
        info = ml_dtypes.iinfo(dtype)
        low, high = int(info.min), int(info.max)
        wide = rng.integers(low, high, shape, dtype="u8" if low == 0 else "i8", endpoint=True)
        near = rng.integers(max(low, -3), min(high, 3), shape, endpoint=True)
        return np.where(rng.random(shape) < 0.5, wide.astype(dtype), near.astype(dtype))
    if "complex" in name:
        part = "float32" if name == "complex64" else "float64"
        x = np.empty(shape, dtype)
        x.real, x.imag = (rng.normal(size=shape).astype(part) for _ in range(2))
        return x
    values = rng.normal(size=shape) * 4.0 ** rng.integers(-3, 3, shape)
    special = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.5, -2.5], shape)
    return np.where(rng.random(shape) < 0.2, special, values).astype(dtype)


def integral(rng: np.random.Generator, shape: Sequence[int], name: str) -> np.ndarray[Any, Any]:
    """Returns small whole numbers: sums of their products are exact in every dtype."""
    low = 0 if name.startswith("u") else -3
    values = rng.integers(low, 4, shape)
    if "complex" in name:
        return (values + 1j * rng.integers(low, 4, shape)).astype(named_dtype(name))
    return values.astype(named_dtype(name))


def assert_close(found: Any, wanted: Any, what: str, ulps: float = 8) -> None:
    """Compares arrays: integers exactly, floats to so many units in the last place, also of the
    largest part of a complex number."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), what
    name = wanted.dtype.name
    if name == "bool" or "int" in name:
        np.testing.assert_array_equal(found, wanted, err_msg=what)
        return
    if "complex" in name:
        scale = np.abs(wanted)
        part = wanted.real.dtype
        for a, b in ((found.real, wanted.real), (found.imag, wanted.imag)):
            _close(a, b, np.nan_to_num(scale, posinf=1), part, what, ulps)
        return
    wide = np.float64
    a, b = found.astype(wide), wanted.astype(wide)
    _close(a, b, np.abs(np.nan_to_num(b, posinf=1, neginf=1)), wanted.dtype, what, ulps)


def _close(a: Any, b: Any, scale: Any, dtype: Any, what: str, ulps: float) -> None:
    info = ml_dtypes.finfo(dtype)
    if info.bits <= 16:
        ulps = min(ulps, 2)
    room = ulps * float(info.eps) * scale + ulps * float(info.smallest_subnormal)
    with np.errstate(invalid="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= room)
        # Denormal numbers are zero to XLA.
        same |= (np.abs(a) <= float(info.tiny)) & (np.abs(b) <= float(info.tiny))
    if not np.all(same):
        worst = np.argwhere(~np.asarray(same))[0]
        raise AssertionError(
            f"{what}: {(~same).sum()} of {same.size} differ, first at {worst}: "
            f"{np.asarray(a)[tuple(worst)]!r}, wanted {np.asarray(b)[tuple(worst)]!r}"
        )
