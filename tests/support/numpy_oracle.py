"""NumPy as the oracle: sample data of every dtype, and comparisons with NumPy's results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from plugrt.tracing.operation import operation

BOOL = ["bool"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
REAL = [*INTEGERS, *FLOATS]
NUMERIC = [*REAL, *COMPLEX]
ALL = [*BOOL, *NUMERIC]

_TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-5, "complex64": 1e-5}


def dtype_of(name: str) -> np.dtype[Any]:
    """Returns the NumPy or ml_dtypes dtype of that name."""
    return np.dtype(getattr(ml_dtypes, name, None) or name)


def sample(shape: tuple[int, ...], dtype: str, seed: int = 0) -> npt.NDArray[Any]:
    """Returns small numbers, with ties and (if there are any) negative ones among them."""
    random = np.random.default_rng(seed)
    kind = np.dtype(dtype_of(dtype)).kind
    numbers = random.integers(0 if kind in "bu" else -4, 2 if kind == "b" else 5, shape)
    values = np.asarray(numbers, np.float64)
    if kind not in "biu":
        values = values + random.integers(0, 4, shape) / 4
    if kind == "c":
        values = values + 1j * random.integers(-3, 4, shape)
    return values.astype(dtype_of(dtype))


def same(result: Any, expected: Any, dtype: Any = None, tolerance: float | None = None) -> None:
    """Asserts that a result has the shape, the values and the dtype (``dtype``, if given)."""
    host, expected = np.asarray(result), np.asarray(expected)
    wanted = expected.dtype if dtype is None else dtype_of(str(np.dtype(dtype)))
    assert host.dtype == wanted, f"dtype {host.dtype}, expected {wanted}"
    assert host.shape == expected.shape, f"shape {host.shape}, expected {expected.shape}"
    if host.dtype.kind in "biu":
        np.testing.assert_array_equal(host, expected)
        return
    near = _TOLERANCE.get(host.dtype.name, 1e-12) if tolerance is None else tolerance
    if host.dtype.kind != "c":
        host, expected = host.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_allclose(host, expected, rtol=near, atol=near)


def identical(result: Any, expected: Any) -> None:
    """Asserts that a result has shape, dtype and exactly the values, NaN equalling NaN."""
    same(result, expected, tolerance=0.0)


def traced(function: Callable[..., Any]) -> Any:
    """Returns the function in traced form: its arguments are tracers, its result arrays."""

    def body(*arrays: Any) -> Any:
        return function(*arrays)

    return operation(body)
