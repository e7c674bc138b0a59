from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import lax
from plugrt.errors import ArgumentError, AxisError, DtypeError, ShapeError
from support.jax_oracle import jax, same

A = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_stack_and_unstack(axis: int) -> None:
    stacked = plugrt.jit(lambda x: lax.stack([x, 2 * x, x], axis))(A)
    same(stacked, jax.lax.stack([A, 2 * A, A], axis))
    parts = lax.unstack(stacked, axis)
    assert type(parts) is tuple
    same(list(parts), [A, 2 * A, A])


def test_tile_and_rank() -> None:
    for reps in ((2, 1), (1, 3), (0, 2), (2, 2)):
        same(lax.tile(A, reps), jax.lax.tile(A, reps))
    for rank in (2, 4):
        same(lax.broadcast_to_rank(A, rank), jax.lax.broadcast_to_rank(A, rank))


SHAPES = [((2, 1), (3,)), ((2,), (3, 1)), ((), (4,)), ((0, 1), (1, 5), (5,)), ((7,),)]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_broadcast_shapes(shapes: Any) -> None:
    assert lax.broadcast_shapes(*shapes) == jax.lax.broadcast_shapes(*shapes)


def test_cumulative_sums_of_exponentials() -> None:
    x = np.array(
        [[1.0, -50, 100, 3], [-np.inf, -np.inf, 2, np.inf], [0, 88, 88, np.nan]], np.float32
    )
    for options in ({"axis": 0}, {"axis": 1}, {"axis": 1, "reverse": True}):
        same(lax.cumlogsumexp(x, **options), jax.lax.cumlogsumexp(x, **options), rtol=1e-6)


def test_wrong_calls() -> None:
    for call, error, words in (
        (lambda: lax.stack([]), ArgumentError, "one array or more; found none"),
        (lambda: lax.stack([A, A[0]]), ShapeError, r"found \(2, 3\), \(3,\)"),
        (lambda: lax.stack([A, A.astype(np.int32)]), DtypeError, "found float32, int32"),
        (lambda: lax.stack([A], 3), AxisError, "3"),
        (lambda: lax.unstack(A, 2), AxisError, "2"),
        (lambda: lax.tile(A, (2,)), ArgumentError, "reps of lax.tile needs 2 numbers"),
        (lambda: lax.tile(A, (2, -1)), ArgumentError, "0 or more"),
        (lambda: lax.broadcast_to_rank(A, 1), ShapeError, r"shape \(2, 3\) the rank 1"),
        (lambda: lax.broadcast_shapes((2,), (3,)), ShapeError, r"\(2,\), \(3,\) do not broad"),
        (lambda: lax.cumlogsumexp(A.astype(np.int32)), DtypeError, "lax.cumlogsumexp got"),
    ):
        with pytest.raises(error, match=words):
            call()
