"""Utility functions against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import plugrt.array_api as xp
from plugrt.errors import ArgumentError, AxisError, ShapeError
from support.numpy_oracle import ALL, NUMERIC, identical, sample

A = sample((2, 3, 4), "float32")
X = xp.asarray(A)


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("name", ["all", "any"])
def test_all_and_any_of_every_dtype(name: str, dtype: str) -> None:
    a = sample((3, 2), dtype)
    a[0] = 0
    identical(getattr(xp, name)(xp.asarray(a), axis=1), getattr(a.astype(np.bool_), name)(1))


def test_empty_arrays_and_nan() -> None:
    empty = xp.asarray(np.zeros((0, 2), np.float32))
    identical(xp.all(empty, axis=0), np.ones(2, np.bool_))
    identical(xp.any(empty), np.False_)
    identical(xp.all(xp.asarray(np.float32([np.nan, np.inf]))), np.True_)


@pytest.mark.parametrize("dtype", NUMERIC)
def test_diff_of_every_dtype(dtype: str) -> None:
    a = sample((2, 5), dtype)
    identical(xp.diff(xp.asarray(a)), np.diff(a))


def test_diff_refuses() -> None:
    for n in (-1, 1.5):
        with pytest.raises(ArgumentError, match=f"n of diff is {n}"):
            xp.diff(X, n=n)
    with pytest.raises(ShapeError, match=r"prepend of shape \(3, 4\)"):
        xp.diff(X, prepend=X[0])
    with pytest.raises(AxisError):
        xp.diff(X[0, 0, 0])
