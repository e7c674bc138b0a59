"""Set functions: NumPy's values, the standard's rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrt.array_api as xp
from plugrt.errors import DataDependentShape
from support.numpy_oracle import ALL, identical, same, sample, traced

NAMES = ["unique_all", "unique_counts", "unique_inverse", "unique_values"]


@pytest.mark.parametrize("dtype", ALL)
def test_unique_all_of_every_dtype(dtype: str) -> None:
    a = sample((4, 5), dtype)
    found = xp.unique_all(xp.asarray(a))
    values, indices, inverse, counts = np.unique(
        a.reshape(-1), return_index=True, return_inverse=True, return_counts=True
    )
    identical(found.values, values)
    same(found.indices, indices, np.int32)
    same(found.inverse_indices, inverse.reshape(4, 5), np.int32)
    same(found.counts, counts, np.int32)


def test_the_others_return_parts_of_it() -> None:
    x = xp.asarray(sample((4, 5), "float32"))
    everything = xp.unique_all(x)
    counts, inverse = xp.unique_counts(x), xp.unique_inverse(x)
    assert counts._fields == ("values", "counts")
    assert inverse._fields == ("values", "inverse_indices")
    for found in (counts.values, inverse.values, xp.unique_values(x)):
        identical(found, everything.values)
    identical(counts.counts, everything.counts)
    identical(inverse.values[inverse.inverse_indices], x)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64"])
def test_each_nan_is_distinct_and_the_zeros_are_one(dtype: str) -> None:
    a = np.array([np.nan, 0.0, 1, np.nan, -0.0, np.nan])
    x = xp.astype(xp.asarray(a.astype(np.float32)), getattr(xp, dtype))
    found = xp.unique_all(x)
    assert found.values.shape == (5,)
    assert np.isnan(np.asarray(found.values).astype(np.complex64)).sum() == 3
    same(found.counts, [2, 1, 1, 1, 1], np.int32)
    same(found.indices, [1, 2, 0, 3, 5], np.int32)
    same(found.inverse_indices, [2, 0, 1, 3, 0, 4], np.int32)


def test_empty_and_0d_arrays() -> None:
    empty = xp.unique_all(xp.asarray(np.zeros((0, 3), np.float32)))
    assert [x.shape for x in empty] == [(0,), (0,), (0, 3), (0,)]
    scalar = xp.unique_all(xp.asarray(np.int8(3)))
    assert [x.shape for x in scalar] == [(1,), (1,), (), (1,)]


@pytest.mark.parametrize("name", NAMES)
def test_traced_arrays_are_refused_with_the_reason(name: str) -> None:
    def f(x: Any) -> Any:
        return getattr(xp, name)(x)

    with pytest.raises(DataDependentShape, match=rf"x of {name} .*depends on its data"):
        traced(f)(xp.asarray(np.zeros(3)))
