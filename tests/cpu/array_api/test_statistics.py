"""Statistical functions against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrt.array_api as xp
from plugrt.errors import (
    AxisError,
    NotAnArray,
    ShapeError,
    UnhashableStaticArgument,
    UnsupportedDtype,
)
from support.numpy_oracle import ALL, COMPLEX, FLOATS, NUMERIC, REAL, dtype_of, same, sample, traced

A = sample((2, 3, 4), "float32")
X = xp.asarray(A)
CUMULATIVE = {"cumulative_sum": np.cumsum, "cumulative_prod": np.cumprod}


def summed_dtype(dtype: str) -> np.dtype[Any]:
    """Returns the standard's dtype of a sum if the default integer is int32."""
    if dtype in ("bool", "int8", "int16"):
        return np.dtype(np.int32)
    return np.dtype(np.uint32) if dtype in ("uint8", "uint16") else dtype_of(dtype)


def wide(a: Any) -> Any:
    """Returns NumPy's operand in a dtype with exact sums."""
    return a.astype(np.float64) if a.dtype.kind not in "biuc" else a


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("name", ["sum", "prod"])
def test_sum_and_prod_of_every_dtype(name: str, dtype: str) -> None:
    a = sample((3, 4), dtype)
    wanted = summed_dtype(dtype)
    expected = np.asarray(getattr(np, name)(wide(a), axis=1)).astype(wanted)
    same(getattr(xp, name)(xp.asarray(a), axis=1), expected)


@pytest.mark.parametrize("dtype", ["bool", *REAL])
def test_max_and_min_of_every_dtype(dtype: str) -> None:
    a = sample((3, 4), dtype)
    same(xp.max(xp.asarray(a), axis=0), a.max(0))
    same(xp.min(xp.asarray(a), axis=0), a.min(0))


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_max_of_floats_without_infinities(dtype: str) -> None:
    a = np.array([-3, -1, -2]).astype(dtype_of(dtype))
    same(xp.max(xp.asarray(a)), a[1])
    same(xp.min(xp.asarray(a)), a[0])


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_and_infinity(dtype: str) -> None:
    a = np.array([[1, np.nan, -np.inf], [np.inf, 2, -np.inf], [-np.inf] * 3]).astype(
        dtype_of(dtype)
    )
    x = xp.asarray(a)
    for name in ("max", "min", "sum"):
        expected = getattr(np, name)(a.astype(np.float64), axis=1)
        same(getattr(xp, name)(x, axis=1), expected.astype(a.dtype))


@pytest.mark.parametrize("dtype", ["bool", "int16", "uint64", *FLOATS, *COMPLEX])
@pytest.mark.parametrize("name", ["mean", "var", "std"])
def test_mean_var_and_std_of_every_kind(name: str, dtype: str) -> None:
    a = sample((3, 5), dtype)
    expected = getattr(np, name)(wide(a), axis=1)
    lifted = np.float64 if dtype == "uint64" else np.float32
    wanted = dtype_of(dtype) if dtype in [*FLOATS, *COMPLEX] else np.dtype(lifted)
    if name != "mean" and wanted.kind == "c":
        wanted = np.dtype(f"float{wanted.itemsize * 4}")
    same(getattr(xp, name)(xp.asarray(a), axis=1), expected.astype(wanted))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ["mean", "var", "std"])
def test_too_few_elements_give_what_numpy_gives(name: str) -> None:
    empty = np.zeros((2, 0), np.float32)
    same(getattr(xp, name)(xp.asarray(empty), axis=1), getattr(np, name)(empty, axis=1))
    if name != "mean":
        expected = getattr(np, name)(A[0, :2, 0], ddof=3)
        same(getattr(xp, name)(X[0, :2, 0], correction=3), expected)


def test_halves_are_summed_in_float32() -> None:
    a = np.full(5000, 1.001, np.float16)
    same(xp.sum(xp.asarray(a)), np.float16(a.astype(np.float64).sum()), tolerance=1e-3)
    b = np.full(70000, 1.0, np.float16)
    same(xp.mean(xp.asarray(b)), np.float16(1))


def test_empty_arrays() -> None:
    empty = xp.asarray(np.zeros((2, 0, 3), np.float32))
    same(xp.sum(empty, axis=1), np.zeros((2, 3), np.float32))
    same(xp.prod(empty), np.float32(1))
    same(xp.max(empty, axis=0), np.zeros((0, 3), np.float32))
    for name in ("max", "min"):
        with pytest.raises(
            ShapeError, match=rf"{name} over axes \(1,\) got x of shape \(2, 0, 3\)"
        ):
            getattr(xp, name)(empty, axis=1)


@pytest.mark.parametrize("name", ["sum", "max", "mean", "var", "cumulative_sum", "argmax", "sort"])
@pytest.mark.parametrize("value", [[1, 2], None, "abc", (X, X), {}], ids=repr)
def test_values_that_are_no_arrays_are_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(NotAnArray, match=f"argument 'x' of {name}"):
        getattr(xp, name)(value)
    with pytest.raises(NotAnArray, match=f"argument 'x' of {name}"):
        traced(lambda x: getattr(xp, name)(value))(X)


def test_wrong_dtypes_and_axes_are_refused() -> None:
    with pytest.raises(UnsupportedDtype, match="'nonsense' is not a dtype"):
        xp.sum(X, dtype="nonsense")
    with pytest.raises(UnhashableStaticArgument, match="axis"):
        xp.sum(X, axis=xp.asarray(0))
    with pytest.raises(AxisError, match="axis of sum is 3"):
        xp.sum(X, axis=3)
    with pytest.raises(AxisError, match="twice"):
        xp.mean(X, axis=(0, -3))


@pytest.mark.parametrize("name", sorted(CUMULATIVE))
@pytest.mark.parametrize("dtype", NUMERIC)
def test_cumulative_of_every_dtype(name: str, dtype: str) -> None:
    a = sample((3, 4), dtype)
    wanted = summed_dtype(dtype)
    expected = CUMULATIVE[name](wide(a), axis=1).astype(wanted)
    same(getattr(xp, name)(xp.asarray(a), axis=1), expected)


@pytest.mark.parametrize("name", sorted(CUMULATIVE))
def test_cumulative_arguments(name: str) -> None:
    function, oracle = getattr(xp, name), CUMULATIVE[name]
    start = 0 if name == "cumulative_sum" else 1
    for axis in (0, -2):
        expected = oracle(A, axis)
        same(function(X, axis=axis), expected)
        first = np.full_like(expected.take([0], axis), start)
        with_initial = np.concatenate([first, expected], axis)
        same(function(X, axis=axis, include_initial=True), with_initial)
    same(function(X[0, 0]), oracle(A[0, 0]))
    same(function(X[0, 0], dtype=xp.float64), oracle(A[0, 0].astype(np.float64)))
    same(function(X[:0, 0, 0]), A[:0, 0, 0])
    same(function(X[:0, 0, 0], include_initial=True), np.float32([start]))
    with pytest.raises(ShapeError, match="no axis"):
        function(X)


@pytest.mark.parametrize("shape", [(129,), (3, 1000), (1000, 2)])
def test_cumulative_of_longer_axes(shape: tuple[int, ...]) -> None:
    a = sample(shape, "int32")
    axis = int(np.argmax(shape))
    same(xp.cumulative_sum(xp.asarray(a), axis=axis), a.cumsum(axis, dtype=np.int32))
