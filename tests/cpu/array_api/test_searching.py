"""Searching functions against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plugrt
import plugrt.array_api as xp
from plugrt.errors import ArgumentError, AxisError, DataDependentShape, DtypeError, ShapeError
from support.numpy_oracle import ALL, FLOATS, REAL, identical, same, sample, traced

A = sample((3, 4, 5), "float32")
X = xp.asarray(A)


@pytest.mark.parametrize("dtype", ["bool", *REAL])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_argmax_and_argmin_of_every_dtype(name: str, dtype: str) -> None:
    a = sample((3, 5), dtype)
    expected = getattr(np, name)(a.astype(np.float64), axis=1)
    same(getattr(xp, name)(xp.asarray(a), axis=1), expected, np.int32)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_nan_wins_and_infinities_are_found(name: str, dtype: str) -> None:
    nan, inf = np.nan, np.inf
    rows = [[1, nan, inf, nan], [-inf] * 4, [inf] * 4, [0, -inf, inf, inf], [0.0, -0.0, 0, 0]]
    a = np.array(rows).astype(xp.asarray(np.zeros(1)).dtype)
    x = xp.astype(xp.asarray(a), getattr(xp, dtype))
    same(getattr(xp, name)(x, axis=1), getattr(np, name)(a, axis=1), np.int32)


def test_argmax_refuses() -> None:
    with pytest.raises(ShapeError, match=r"argmax .*\(0, 5\).*no elements"):
        xp.argmax(X[0, :0], axis=0)
    with pytest.raises(ShapeError, match="no elements"):
        xp.argmin(X[:0])
    with pytest.raises(DtypeError, match="argmax got x of dtype complex64"):
        xp.argmax(xp.asarray(np.zeros(2, np.complex64)))
    with pytest.raises(AxisError, match="not an integer"):
        xp.argmax(X, axis=(0, 1))
    same(xp.argmax(X[:, :0], axis=0), np.zeros((0, 5)), np.int32)


@pytest.mark.parametrize("dtype", ALL)
def test_where_of_every_dtype(dtype: str) -> None:
    a, b = sample((3, 4), dtype), sample((4,), dtype, seed=1)
    condition = np.array([[True], [False], [True]])
    found = xp.where(xp.asarray(condition), xp.asarray(a), xp.asarray(b))
    identical(found, np.where(condition, a, b))


def test_where_refuses() -> None:
    with pytest.raises(ShapeError, match=r"condition of shape \(2,\)"):
        xp.where(xp.asarray(np.zeros(2, np.bool_)), X, X)


@pytest.mark.parametrize("dtype", ALL)
def test_count_nonzero_and_nonzero_of_every_dtype(dtype: str) -> None:
    a = sample((3, 4), dtype)
    x = xp.asarray(a)
    same(xp.count_nonzero(x, axis=0), np.count_nonzero(a, axis=0), np.int32)
    for found, expected in zip(xp.nonzero(x), np.nonzero(a), strict=True):
        same(found, expected, np.int32)


def test_nonzero_refuses_what_has_no_shape_or_no_data() -> None:
    for of_scalar in (xp.nonzero, plugrt.jit(xp.nonzero), traced(lambda x: x.nonzero())):
        with pytest.raises(ShapeError, match="0-d"):
            of_scalar(X[0, 0, 0])
    with pytest.raises(DataDependentShape, match=r"argument .* of .*array_api\.where"):
        traced(lambda x: xp.nonzero(x)[0])(X)
    assert [i.shape for i in xp.nonzero(X[:0])] == [(0,)] * 3


@pytest.mark.parametrize("dtype", REAL)
def test_searchsorted_of_every_dtype(dtype: str) -> None:
    ordered, wanted = np.sort(sample((9,), dtype)), sample((2, 3), dtype, seed=1)
    for side in ("left", "right"):
        found = xp.searchsorted(xp.asarray(ordered), xp.asarray(wanted), side=side)
        plain = [a.astype(np.float64) for a in (ordered, wanted)]
        same(found, np.searchsorted(*plain, side=side), np.int32)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.sampled_from([-2.0, -1, 0, 0.5, 3, np.inf, -np.inf, np.nan]), max_size=9),
    st.sampled_from(["left", "right"]),
)
def test_searchsorted_of_random_arrays(values: list[float], side: str) -> None:
    ordered = np.sort(np.asarray(values, np.float32))
    wanted = np.float32([-2, -1.5, 0, 3, np.inf, -np.inf, np.nan])
    found = xp.searchsorted(xp.asarray(ordered), xp.asarray(wanted), side=side)
    same(found, np.searchsorted(ordered, wanted, side=side), np.int32)


def test_searchsorted_with_sorter_and_while_tracing() -> None:
    a, wanted = np.array([30, 10, 20]), np.array([[15, 10], [40, 5]])
    sorter = np.argsort(a)
    expected = np.searchsorted(a, wanted, sorter=sorter)
    x, w, s = map(xp.asarray, (a, wanted, sorter))
    same(xp.searchsorted(x, w, sorter=s), expected, np.int32)
    same(traced(lambda x, w: xp.searchsorted(x, w, sorter=xp.argsort(x)))(x, w), expected, np.int32)
    large = np.arange(0, 200_000, 2, dtype=np.int32)
    same(xp.searchsorted(xp.asarray(large), 77_777), np.searchsorted(large, 77_777), np.int32)


def test_searchsorted_refuses() -> None:
    with pytest.raises(ShapeError, match=r"x1 of shape \(3, 4, 5\)"):
        xp.searchsorted(X, X)
    with pytest.raises(ArgumentError, match="side of searchsorted is 'middle'"):
        xp.searchsorted(X[0, 0], X, side="middle")
    with pytest.raises(ShapeError, match=r"sorter of shape \(4,\)"):
        xp.searchsorted(X[0, 0], X, sorter=xp.asarray(np.arange(4)))
    with pytest.raises(DtypeError, match="sorter of dtype float32"):
        xp.searchsorted(X[0, 0], X, sorter=X[0, 0])
