"""Elementwise functions of one array against NumPy, special values and branch cuts included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import plugrt.array_api as xp
from plugrt.errors import NotAnArray
from support.numpy_oracle import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    dtype_of,
    identical,
    same,
    sample,
    traced,
)

FLOATING: dict[str, Callable[..., Any]] = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
    "atan": np.arctan, "atanh": np.arctanh, "cos": np.cos, "cosh": np.cosh, "exp": np.exp,
    "expm1": np.expm1, "log": np.log, "log10": np.log10, "log1p": np.log1p, "log2": np.log2,
    "reciprocal": np.reciprocal, "sin": np.sin, "sinh": np.sinh, "sqrt": np.sqrt, "tan": np.tan,
    "tanh": np.tanh,
}  # fmt: skip
NUMERIC: dict[str, Callable[..., Any]] = {
    "abs": np.abs, "conj": np.conj, "imag": np.imag, "isfinite": np.isfinite, "isinf": np.isinf,
    "isnan": np.isnan, "negative": np.negative, "positive": np.positive, "real": np.real,
    "round": np.round, "sign": np.sign, "square": np.square,
}  # fmt: skip
REAL: dict[str, Callable[..., Any]] = {"ceil": np.ceil, "floor": np.floor, "trunc": np.trunc}

SPECIAL = np.array(
    [-np.inf, -1e30, -3.5, -2.5, -1, -0.5, -1e-20, -0.0, 0, 1e-20, 0.3, 0.5, 1, 1.5, 2, 8, 1000,
     1e30, np.inf, np.nan]
)  # fmt: skip
PARTS = [-np.inf, -2.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 3.0, np.inf, np.nan]
PLANE = np.array([complex(a, b) for a in PARTS for b in PARTS])
FINITE = PLANE[np.isfinite(PLANE)]

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def expected(function: Callable[..., Any], *arrays: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Returns NumPy's result; other dtypes than float32 and wider are computed in float32."""
    dtype = arrays[0].dtype
    if dtype.kind == "f" and dtype.itemsize > 2:
        return np.asarray(function(*arrays))
    result = np.asarray(function(*[a.astype(np.float32) for a in arrays]))
    return result if result.dtype == np.bool_ else result.astype(dtype)


def of_each(function: Callable[..., Any], arrays: list[Any]) -> list[Any]:
    """Returns the results for several arrays, computed by one program."""
    result: list[Any] = traced(lambda *xs: [function(x) for x in xs])(*arrays)
    return result


@pytest.mark.parametrize("name", [*FLOATING, *NUMERIC, *REAL])
def test_floats(name: str) -> None:
    arrays = [SPECIAL.astype(dtype_of(dtype)) for dtype in FLOATS]
    for values, result in zip(arrays, of_each(getattr(xp, name), arrays), strict=True):
        same(result, expected({**FLOATING, **NUMERIC, **REAL}[name], values))


@pytest.mark.parametrize("name", [*NUMERIC, *REAL])
def test_integers_keep_their_dtype(name: str) -> None:
    limits = {dtype: np.iinfo(dtype) for dtype in INTEGERS}
    arrays = [np.array([i.min, 0, 1, 5, i.max], dtype) for dtype, i in limits.items()]
    for values, result in zip(arrays, of_each(getattr(xp, name), arrays), strict=True):
        wanted = {**NUMERIC, **REAL}[name](values)
        identical(result, wanted if wanted.dtype == np.bool_ else wanted.astype(values.dtype))


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", [*FLOATING, *NUMERIC])
def test_complex_with_signed_zeros(name: str, dtype: str) -> None:
    values = FINITE.astype(dtype)
    if name == "reciprocal":
        values = values[values != 0]  # C does not define 1 / 0
    result = np.asarray(getattr(xp, name)(values))
    wanted = {**FLOATING, **NUMERIC}[name](values)
    assert result.dtype == wanted.dtype
    near = 1e-5 if dtype == "complex64" else 1e-12
    for part in (np.real, np.imag):
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(part(result), part(wanted), rtol=near, atol=near)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_small_imaginary_parts_keep_their_digits(dtype: str) -> None:
    values = np.array([1 + 1e-20j, -2 - 1e-10j, 0.3 + 1e-5j, 2 - 0.99j], dtype)
    for name in ("sin", "cos"):
        wanted = FLOATING[name](values).imag
        result = np.asarray(getattr(xp, name)(values)).imag
        np.testing.assert_allclose(result, wanted, rtol=8 * np.finfo(dtype).eps, err_msg=name)


def test_log10_of_most_powers_of_10_is_whole() -> None:
    powers = np.arange(-37, 38)
    for dtype in ("float32", "float64"):
        x = np.array([float(f"1e{k}") for k in powers], dtype)
        assert sum(np.asarray(xp.log10(xp.asarray(x))) == powers) > 45, dtype


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (2, 3)])
def test_shapes(shape: tuple[int, ...]) -> None:
    values = sample(shape, "float32")
    same(xp.exp(values), np.exp(values))
    same(traced(xp.tanh)(values), np.tanh(values))
    identical(xp.bitwise_invert(values > 0), ~(values > 0))


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz"])
def test_eight_bit_floats(dtype: str) -> None:
    values = np.array([-2, -0.5, 0, 1, 2, 4]).astype(dtype_of(dtype))
    identical(xp.negative(values), -values)
    identical(xp.isfinite(values), np.ones(6, np.bool_))
    identical(xp.isinf(values), np.zeros(6, np.bool_))
    identical(xp.exp(values), np.exp(values.astype(np.float32)).astype(values.dtype))


@pytest.mark.parametrize("thing", [None, "text", [1.0], object()])
def test_values_that_are_no_arrays_are_refused(thing: Any) -> None:
    for function in (xp.sin, lambda x: xp.add(1.0, x), lambda x: traced(xp.add)(x, x)):
        with pytest.raises(NotAnArray, match=type(thing).__name__):
            function(thing)
