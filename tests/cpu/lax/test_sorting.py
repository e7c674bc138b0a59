from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from plugrt import lax
from plugrt.errors import ArgumentError, DtypeError, ShapeError
from support.jax_oracle import same

X = np.array([[3, 1, 2, 1], [0, -1, 5, 0], [2, 2, 2, 1]], np.int32)
F = np.array([np.nan, 1, -0.0, np.inf, 0.0, -np.inf, -1, np.nan], np.float32)


def test_sort_puts_nan_last_and_keeps_equal_zeros_in_order() -> None:
    found = lax.sort(F)
    same(found, jax.lax.sort(F))
    assert np.signbit(np.asarray(found)).tolist()[2:4] == [True, False]
    same(lax.sort(np.array([1 + 2j, 1 - 1j, 0j], np.complex64)), np.complex64([0, 1 - 1j, 1 + 2j]))
    same(lax.sort(np.array([True, False, True])), np.array([False, True, True]))
    same(lax.sort(np.array([200, 3], np.uint8)), np.array([3, 200], np.uint8))


@pytest.mark.parametrize("num_keys", [1, 2])
def test_sort_of_several_goes_by_the_first_keys(num_keys: int) -> None:
    keys = np.array([1, 0, 1, 0, 1], np.int8)
    more = np.array([5.0, 4, 3, 2, 1], np.float32)
    rest = np.arange(5, dtype=np.int32)
    operands = (keys, more, rest)
    same(lax.sort(operands, num_keys=num_keys), jax.lax.sort(operands, num_keys=num_keys))
    same(lax.sort_key_val(keys, rest), jax.lax.sort_key_val(keys, rest))


@given(hnp.arrays(np.int16, st.integers(1, 8), elements=st.integers(-3, 3)))
@settings(max_examples=20, deadline=None)
def test_sort_key_val_is_stable(keys: np.ndarray[Any, Any]) -> None:
    order = np.argsort(keys, kind="stable")
    found = lax.sort_key_val(keys, np.arange(len(keys), dtype=np.int32))
    same(found, (keys[order], order.astype(np.int32)))


@pytest.mark.parametrize("x", [X, X.astype(np.float32), F[None], np.uint8([[3, 250, 7]])])
@pytest.mark.parametrize("k", [0, 2])
def test_top_k_matches_jax(x: Any, k: int) -> None:
    same(lax.top_k(x, k), jax.lax.top_k(x, k))


def test_wrong_operands_of_sort_and_top_k_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"one shape; found \(3, 4\), \(4,\)"):
        lax.sort((X, X[0]))
    with pytest.raises(ArgumentError, match=r"num_keys of lax\.sort must be between 1 and 2"):
        lax.sort((X, X), num_keys=3)
    with pytest.raises(ArgumentError, match="at least one array"):
        lax.sort(())
    with pytest.raises(ArgumentError, match="between 0 and 4"):
        lax.top_k(X, 5)
    with pytest.raises(DtypeError, match="top_k"):
        lax.top_k(X.astype(np.complex64), 1)
    with pytest.raises(ShapeError, match="is 0, which is out of range for 0 dimensions"):
        lax.sort(np.int32(3), 0)


@pytest.mark.parametrize("dimension", [0, 1, -1])
def test_sort_matches_jax_along_each_dimension(dimension: int) -> None:
    same(lax.sort(X, dimension), jax.lax.sort(X, dimension))


def test_top_k_along_another_axis() -> None:
    values, indices = lax.top_k(X, 2, axis=0)
    expected = jax.lax.top_k(X.T, 2)
    same((values, indices), (np.asarray(expected[0]).T, np.asarray(expected[1]).T))
