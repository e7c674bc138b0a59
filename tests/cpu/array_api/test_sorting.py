"""Sorting functions against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plugrt.array_api as xp
from plugrt.errors import AxisError
from support.numpy_oracle import REAL, identical, same, sample

A = sample((3, 4, 5), "float32")
X = xp.asarray(A)


@pytest.mark.parametrize("dtype", ["bool", *REAL])
def test_every_dtype(dtype: str) -> None:
    a = sample((3, 7), dtype)
    order = np.argsort(a.astype(np.float64), axis=1, kind="stable")
    x = xp.asarray(a)
    identical(xp.sort(x), np.take_along_axis(a, order, 1))
    same(xp.argsort(x), order, np.int32)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("descending", [False, True])
def test_axes_and_descending(axis: int, descending: bool) -> None:
    expected = np.sort(A, axis=axis)
    expected = np.flip(expected, axis) if descending else expected
    identical(xp.sort(X, axis=axis, descending=descending), expected)
    order = np.argsort(-A if descending else A, axis=axis, kind="stable")
    same(xp.argsort(X, axis=axis, descending=descending), order, np.int32)
    unstable = xp.argsort(X, axis=axis, descending=descending, stable=False)
    identical(xp.take_along_axis(X, unstable, axis=axis), expected)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.sampled_from([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0]), max_size=7)
)
def test_nan_comes_last_and_zeros_are_equal(values: list[float]) -> None:
    a = np.asarray(values, np.float32)
    order = np.argsort(a, kind="stable")
    same(xp.argsort(xp.asarray(a)), order, np.int32)
    found = np.asarray(xp.sort(xp.asarray(a)))
    np.testing.assert_array_equal(found, a[order])
    np.testing.assert_array_equal(
        np.signbit(found[found == 0]), np.signbit(a[order][a[order] == 0])
    )


def test_wrong_axes_are_refused() -> None:
    with pytest.raises(AxisError, match="axis of argsort is -4"):
        xp.argsort(X, axis=-4)
    with pytest.raises(AxisError, match="0 dimensions"):
        xp.sort(X[0, 0, 0])


def test_nan_comes_first_when_descending() -> None:
    a = np.float32([1, np.nan, -np.inf, 3, np.nan])
    identical(xp.sort(xp.asarray(a), descending=True), np.float32([np.nan, np.nan, 3, 1, -np.inf]))
    same(xp.argsort(xp.asarray(a), descending=True), [1, 4, 3, 0, 2], np.int32)
