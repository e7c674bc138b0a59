from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from plugrt import lax
from plugrt.errors import ArgumentError, DtypeError, ShapeError
from support.jax_oracle import same

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_other_shapes() -> None:
    same(lax.reshape(X, (3, 2)), X.reshape(3, 2))
    same(lax.reshape(X, (6,), (1, 0)), X.T.ravel())
    same(lax.transpose(X, (1, 0)), X.T)
    same(lax.broadcast(X, (2, 1)), np.broadcast_to(X, (2, 1, 2, 3)))
    same(lax.broadcast_in_dim(X[:, :1], (2, 4, 3), (0, 2)), np.tile(X[:, None, :1], (1, 4, 3)))
    same(lax.squeeze(X[None, :, :, None], (0, -1)), X)
    same(lax.expand_dims(X, (0, 3)), X[None, :, :, None])
    same(lax.collapse(X[None], 0, 2), X)
    same(lax.collapse(X, 0), X.ravel())
    same(lax.rev(X, (1,)), X[:, ::-1])
    same(lax.concatenate([X, X[:, :1]], 1), np.concatenate([X, X[:, :1]], 1))
    same(lax.split(X, (1, 0, 2), axis=1), [X[:, :1], X[:, 1:1], X[:, 1:]])


@pytest.mark.parametrize(
    "config", [((1, 2, 0), (0, 0, 2)), ((-1, 0, 0), (2, -1, 1)), ((0, 0, 0), (-3, 0, 0))]
)
def test_pad_matches_jax(config: Any) -> None:
    same(lax.pad(X, np.float32(-1), config), jax.lax.pad(X, np.float32(-1), config))
    same(lax.pad(X, -1, config), jax.lax.pad(X, np.float32(-1), config))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: lax.reshape(X, (4,)), ShapeError, r"shape \(4,\) of shape \(2, 3\)"),
        (lambda: lax.transpose(X, (0, 0)), ShapeError, "0 to 1 once each"),
        (lambda: lax.broadcast_in_dim(X, (2, 4), (0, 1)), ShapeError, r"into shape \(2, 4\)"),
        (lambda: lax.broadcast_in_dim(X, (3, 2), (1, 0)), ShapeError, "must ascend"),
        (lambda: lax.squeeze(X, (0,)), ShapeError, "not all are 1"),
        (lambda: lax.concatenate([X, X[0]], 0), ShapeError, r"\(2, 3\), \(3,\)"),
        (lambda: lax.concatenate([], 0), ArgumentError, "at least one"),
        (lambda: lax.split(X, (1, 1), 1), ShapeError, "add up to 3"),
        (lambda: lax.pad(X, 0, ((0, 0, 0),)), ArgumentError, "each of 2 dimensions"),
        (lambda: lax.pad(X, X, ((0, 0, 0),) * 2), ShapeError, "must be a scalar"),
        (lambda: lax.iota(bool, 3), DtypeError, "makes numbers"),
        (lambda: lax.rev(X, (2,)), ShapeError, "is 2, which is out of range for 2 dimensions"),
        (lambda: lax.full((2,), X), ShapeError, "must be a scalar"),
    ],
)
def test_shapes_that_do_not_match_are_refused(
    call: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()


def test_arrays_made_of_a_shape() -> None:
    same(lax.iota(np.int8, 4), np.arange(4, dtype=np.int8))
    same(lax.iota(float, 3), np.arange(3, dtype=np.float32))
    same(lax.broadcasted_iota(np.float32, (2, 3), 1), np.tile(np.float32([0, 1, 2]), (2, 1)))
    same(lax.full((2, 2), 7), np.full((2, 2), 7, np.int32))
    same(lax.full((2,), 1.5, np.float16), np.full(2, 1.5, np.float16))
    same(lax.full_like(X, 2), np.full_like(X, 2))
    same(lax.full_like(X, 2, bool, (1,)), np.array([True]))
