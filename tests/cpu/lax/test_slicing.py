from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from plugrt import jit, lax
from plugrt.errors import ArgumentError, DtypeError, ShapeError, TracingError
from support.jax_oracle import same

X = np.arange(24, dtype=np.float32).reshape(4, 6)


def test_slices_match_jax() -> None:
    same(lax.slice(X, (1, 2), (3, 6)), X[1:3, 2:6])
    same(lax.slice(X, (0, 1), (4, 6), (2, 3)), X[::2, 1::3])
    same(lax.slice_in_dim(X, 1, -1, 2, axis=1), X[:, 1:-1:2])
    same(lax.slice_in_dim(X, None, None, axis=-1), X)
    same(lax.index_in_dim(X, -1, 1), X[:, -1:])
    same(lax.index_in_dim(X, 2, 0, keepdims=False), X[2])


@pytest.mark.parametrize("start", [(0, 0), (1, 2), (3, 5), (-1, -2), (9, 0)])
def test_dynamic_slice_clamps_and_counts_from_the_end_as_jax_does(start: tuple[int, int]) -> None:
    update = np.full((2, 3), -1, np.float32)
    same(lax.dynamic_slice(X, start, (2, 3)), jax.lax.dynamic_slice(X, start, (2, 3)))
    expected = jax.lax.dynamic_update_slice(X, update, start)
    same(lax.dynamic_update_slice(X, update, start), expected)
    same(lax.dynamic_slice(X, np.array(start), (2, 3)), jax.lax.dynamic_slice(X, start, (2, 3)))


@pytest.mark.parametrize("allowed", [False, (True, False), [False, True]])
def test_counting_from_the_end_can_be_left_out_as_jax_does(allowed: Any) -> None:
    start = (np.array(-1), np.array(-2))
    update = np.full((2, 3), -1, np.float32)
    for function, arguments in (
        ("dynamic_slice", (X, start, (2, 3))),
        ("dynamic_update_slice", (X, update, start)),
    ):
        found = getattr(lax, function)(*arguments, allow_negative_indices=allowed)
        expected = getattr(jax.lax, function)(*arguments, allow_negative_indices=allowed)
        same(found, expected)
    with pytest.raises(ArgumentError, match="2 dimensions; found 1"):
        lax.dynamic_slice(X, start, (2, 3), allow_negative_indices=(True,))


def test_counting_from_the_end_can_be_left_out_along_one_dimension() -> None:
    row, rows = np.full((1, 6), -1, np.float32), np.full((2, 6), -1, np.float32)
    index = np.array(-2)
    for function, arguments in (
        ("dynamic_slice_in_dim", (X, index, 2)),
        ("dynamic_index_in_dim", (X, index)),
        ("dynamic_update_slice_in_dim", (X, rows, index, 0)),
        ("dynamic_update_index_in_dim", (X, row, index, 0)),
    ):
        for allowed in (True, False):
            found = getattr(lax, function)(*arguments, allow_negative_indices=allowed)
            expected = getattr(jax.lax, function)(*arguments, allow_negative_indices=allowed)
            same(found, expected)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.uint32, np.int64])
def test_dynamic_slice_takes_indices_of_any_integer_dtype(dtype: Any) -> None:
    index = np.array(3, dtype)
    same(lax.dynamic_slice(X, (index, 1), (1, 5)), X[3:, 1:])
    same(lax.dynamic_slice_in_dim(X, index, 1), X[3:])
    same(lax.dynamic_update_slice_in_dim(X, X[:1], index, 0)[3], X[0])


def test_slices_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"limits \[5, 6\].* shape \(4, 6\)"):
        lax.slice(X, (0, 0), (5, 6))
    with pytest.raises(ArgumentError, match="2 numbers, one for each dimension"):
        lax.slice(X, (0,), (1,))
    with pytest.raises(ShapeError, match=r"slice_sizes \[5, 1\]"):
        lax.dynamic_slice(X, (0, 0), (5, 1))
    with pytest.raises(ShapeError, match="needs 2 start indices"):
        lax.dynamic_slice(X, (0,), (1, 1))
    with pytest.raises(DtypeError, match="integer scalars"):
        lax.dynamic_slice(X, (0.0, 1), (1, 1))
    with pytest.raises(ShapeError, match="does not fit into operand"):
        lax.dynamic_update_slice(X, np.ones((5, 1), np.float32), (0, 0))
    with pytest.raises(ShapeError, match="is 2, which is out of range for 2 dimensions"):
        lax.dynamic_index_in_dim(X, 0, 2)


NUMBERS = lax.GatherDimensionNumbers(
    offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0, 1)
)
PLACES = np.array([[0, 0], [3, 4], [2, 5], [-1, 0], [7, 1]], np.int32)


@pytest.mark.parametrize("mode", [None, "fill", "clip", "promise_in_bounds"])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint8, np.bool_])
def test_gather_matches_jax_in_each_mode(mode: Any, dtype: Any) -> None:
    x = (X % 3).astype(dtype)
    places = PLACES[:2] if mode == "promise_in_bounds" else PLACES
    theirs = jax.lax.GatherDimensionNumbers((1,), (0,), (0, 1))
    expected = jax.lax.gather(x, places, theirs, (1, 2), mode=mode)
    same(lax.gather(x, places, NUMBERS, (1, 2), mode=mode), expected)
    same(lax.gather(x, places.astype(np.int8), theirs, (1, 2), mode=mode), expected)


def test_gather_fills_with_what_is_asked_for() -> None:
    found = lax.gather(X, PLACES, NUMBERS, (1, 2), mode="fill", fill_value=-7)
    same(found, np.array([[0, 1], [22, 23], [-7, -7], [-7, -7], [-7, -7]], np.float32))


@pytest.mark.parametrize("mode", [None, "clip"])
@pytest.mark.parametrize(
    "name", ["scatter", "scatter_add", "scatter_mul", "scatter_min", "scatter_max", "scatter_sub"]
)
def test_scatters_match_jax(name: str, mode: Any) -> None:
    places = np.array([[0], [2], [2], [5], [-1]], np.int32)
    places = places[[0, 1, 3, 4]] if name == "scatter" else places
    if (name, mode) == ("scatter", "clip"):
        places = places[:3]  # others are clipped to one position, whose value is undefined
    updates = (np.arange(len(places) * 6, dtype=np.float32).reshape(-1, 6) % 5) + 2
    ours = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    theirs = jax.lax.ScatterDimensionNumbers((1,), (0,), (0,))
    expected = getattr(jax.lax, name)(X, places, updates, theirs, mode=mode)
    same(getattr(lax, name)(X, places, updates, ours, mode=mode), expected)


def test_gather_and_scatter_say_what_does_not_fit() -> None:
    with pytest.raises(ArgumentError, match=r"mode of lax\.gather is None"):
        lax.gather(X, PLACES, NUMBERS, (1, 2), mode="nearest")
    with pytest.raises(DtypeError, match="integer array"):
        lax.gather(X, PLACES.astype(np.float32), NUMBERS, (1, 2))
    with pytest.raises(TracingError, match="gather"):
        lax.gather(X, PLACES, NUMBERS, (1, 9))
    ours = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    with pytest.raises(TracingError, match="scatter_add"):
        lax.scatter_add(X, PLACES[:, :1], np.ones((5, 7), np.float32), ours)
    with pytest.raises(DtypeError, match="operand float32, updates int32"):
        lax.scatter_add(X, PLACES[:, :1], np.ones((5, 6), np.int32), ours)


def test_slices_of_one_dimension_match_jax() -> None:
    row = np.ones(6, np.float32)
    same(lax.dynamic_slice_in_dim(X, 3, 2, 1), X[:, 3:5])
    same(lax.dynamic_index_in_dim(X, 2), X[2:3])
    same(lax.dynamic_index_in_dim(X, np.int32(-1), 1, keepdims=False), X[:, -1])
    same(
        lax.dynamic_update_slice_in_dim(X, X[:, :2], 4, 1),
        jax.lax.dynamic_update_slice_in_dim(X, X[:, :2], 4, 1),
    )
    expected = jax.lax.dynamic_update_index_in_dim(X, row, 1, 0)
    same(lax.dynamic_update_index_in_dim(X, row, 1, 0), expected)
    same(lax.dynamic_update_index_in_dim(X, row[None], 1, 0), expected)
    same(jit(lambda x, i: lax.dynamic_index_in_dim(x, i, 1))(X, 4), X[:, 4:5])
