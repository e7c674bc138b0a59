from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from plugrt import jit, lax
from plugrt.errors import ArgumentError, DtypeError, ShapeError, StructureError, TracingError
from support.jax_oracle import same

X = (np.arange(24, dtype=np.float32).reshape(2, 3, 4) * 5) % 7
N = X.astype(np.int32)


@pytest.mark.parametrize(
    ("name", "x"),
    [
        ("reduce_prod", X[:, :, 1:]),
        ("reduce_and", N > 0),
        ("reduce_or", N),
        ("reduce_and", N),
        ("reduce_xor", N.astype(np.uint8)),
        ("reduce_max", np.zeros((2, 0), np.float32)),
        ("reduce_min", np.zeros((2, 0), np.int8)),
        ("reduce_max", np.array([[1, np.nan]], np.float32)),
        ("reduce_sum", np.array([[1, 2j]], np.complex64)),
    ],
)
def test_reductions_match_jax(name: str, x: Any) -> None:
    same(getattr(lax, name)(x, (1,)), getattr(jax.lax, name)(x, (1,)))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_index_of_extremum_matches_jax(name: str) -> None:
    nans = np.array([[1, np.nan, 3, np.nan], [-np.inf] * 4, [2, 5, 5, 1]], np.float32)
    for x in (nans, nans[2:], N[0]):
        for axis in (0, 1):
            expected = getattr(jax.lax, name)(x, axis, np.int32)
            same(getattr(lax, name)(x, axis, np.int32), expected)
    with pytest.raises(ArgumentError, match="has length 0"):
        getattr(lax, name)(np.zeros((0, 2), np.float32), 0, np.int32)
    with pytest.raises(DtypeError, match="index_dtype"):
        getattr(lax, name)(X, 0, np.float32)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin"])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_reductions_match_jax(name: str, reverse: bool) -> None:
    for x in (N % 4, X[0]):
        expected = getattr(jax.lax, name)(x, axis=1, reverse=reverse)
        same(getattr(lax, name)(x, 1, reverse), expected, rtol=1e-6)


def test_reduce_takes_any_computation_on_several_arrays() -> None:
    def pick(a: Any, b: Any) -> Any:
        wins = lax.ge(a["v"], b["v"])
        return {k: lax.select(wins, a[k], b[k]) for k in a}

    places = np.broadcast_to(np.arange(4, dtype=np.int32), X.shape)
    start = {"v": np.float32(-np.inf), "i": np.int32(-1)}
    found = lax.reduce({"v": X, "i": places}, start, pick, (2,))
    same(found["v"], X.max(2))
    same(np.take_along_axis(X, np.asarray(found["i"])[..., None], 2)[..., 0], X.max(2))


def test_reduce_says_what_does_not_fit() -> None:
    with pytest.raises(DtypeError, match=r"must be float32\[\]; found int32\[\]"):
        lax.reduce(X, np.int32(0), lax.add, (0,))
    with pytest.raises(StructureError, match="one structure"):
        lax.reduce((X, X), (0,), lambda a, b: a, (0,))
    with pytest.raises(StructureError, match=r"computation of lax\.reduce must return"):
        lax.reduce((X, X), (0, 0), lambda a, b: a[0], (0,))
    with pytest.raises(DtypeError, match=r"output 0 of the computation of lax.reduce must be"):
        lax.reduce(X, 0, lambda a, b: lax.lt(a, b), (0,))
    with pytest.raises(ShapeError, match="names an axis twice"):
        lax.reduce(X, 0, lax.add, (0, 0))
    with pytest.raises(TracingError, match="from around it"):
        jit(lambda x, y: lax.reduce(x, 0, lambda a, b: lax.add(a, lax.mul(b, y)), (0,)))(
            X, np.float32(2)
        )


WINDOWS = [
    ((2, 2), None, "VALID", None, None),
    ((3, 2), (2, 1), "SAME", None, None),
    ((2, 3), (1, 2), "SAME_LOWER", None, None),
    ((2, 2), (1, 1), ((1, 0), (0, 2)), (2, 1), (1, 2)),
]


@pytest.mark.parametrize("window", WINDOWS)
def test_reduce_window_matches_jax(window: Any) -> None:
    x = X[0]
    expected = jax.lax.reduce_window(x, -np.inf, jax.lax.max, *window)
    same(lax.reduce_window(x, np.float32(-np.inf), lax.max, *window), expected)
    expected = jax.lax.reduce_window(N[0], 0, jax.lax.add, *window)
    same(lax.reduce_window(N[0], 0, lax.add, *window), expected)


def test_reduce_window_says_what_does_not_fit() -> None:
    with pytest.raises(ArgumentError, match=r"window_dimensions of lax\.reduce_window needs 2"):
        lax.reduce_window(X[0], 0, lax.add, (2,))
    with pytest.raises(ArgumentError, match="'SAME', 'SAME_LOWER', 'VALID'"):
        lax.reduce_window(X[0], 0, lax.add, (2, 2), padding="FULL")
