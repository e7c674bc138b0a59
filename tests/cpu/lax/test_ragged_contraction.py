from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import lax
from plugrt.errors import ArgumentError, ArgumentTypeError, DtypeError, ShapeError, Unimplemented
from support.behaviour import behaviour
from support.effort import seeds
from support.jax_oracle import jax, same


def whole(rng: np.random.Generator, *shape: int) -> np.ndarray[Any, Any]:
    return rng.integers(-4, 5, shape).astype(np.float32)


@behaviour(19, "`lax.ragged_dot` multiplies each group of rows by its matrix")
def test_ragged_dot() -> None:
    for seed in seeds(4):
        rng = np.random.default_rng(seed)
        m, k, n, g = rng.integers(1, 6, 4)
        sizes = rng.multinomial(int(rng.integers(0, m + 1)), np.ones(g) / g).astype(np.int32)
        x, y = whole(rng, m, k), whole(rng, g, k, n)
        expected = np.zeros((m, n), np.float32)
        for i, end in enumerate(np.cumsum(sizes)):
            expected[end - sizes[i] : end] = x[end - sizes[i] : end] @ y[i]
        found = lax.ragged_dot(x, y, sizes)
        same(found, expected)
        same(plugrt.jit(lax.ragged_dot)(x, y, sizes), expected)
        same(found, jax.lax.ragged_dot(x, y, sizes))


NUMBERS: dict[str, tuple[Any, tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = {
    "free": (((((2,), (2,)), ((0,), (1,))), (1,), (0,)), (2, 7, 3), (4, 2, 3, 5), (4,)),
    "free, sizes for each batch": (
        ((((2,), (2,)), ((0,), (1,))), (1,), (0,)), (2, 7, 3), (4, 2, 3, 5), (2, 4)),
    "free, batches in the middle": (
        ((((0,), (1,)), ((2,), (0,))), (3,), (2,)), (3, 2, 5, 7), (5, 3, 4, 6), (5, 2, 4)),
    "contracted": (((((1,), (0,)), ((), ())), (1,), ()), (2, 7), (7, 5), (4,)),
    "contracted, with a batch": (
        ((((1, 2), (2, 1)), ((0,), (0,))), (2,), ()), (2, 3, 7), (2, 7, 3, 5), (2, 3, 4)),
    "batch": (((((2,), (1,)), ((0,), (0,))), (0,), ()), (7, 2, 3), (7, 3, 5), (4,)),
}  # fmt: skip


@pytest.mark.parametrize("name", NUMBERS)
def test_ragged_dot_general_in_its_modes(name: str) -> None:
    given, left, right, groups = NUMBERS[name]
    rng = np.random.default_rng(0)
    x, y = whole(rng, *left), whole(rng, *right)
    sizes = rng.multinomial(6, np.ones(groups[-1]) / groups[-1], groups[:-1]).astype(np.int32)
    ours, theirs = lax.RaggedDotDimensionNumbers(*given), jax.lax.RaggedDotDimensionNumbers(*given)
    expected = jax.lax.ragged_dot_general(x, y, sizes, theirs)
    same(lax.ragged_dot_general(x, y, sizes, ours), expected)
    same(lax.ragged_dot_general(x, y, sizes, theirs, preferred_element_type=np.float64),
         np.asarray(expected, np.float64))  # fmt: skip


def test_infinities_stay_in_their_groups() -> None:
    numbers = ((((1,), (0,)), ((), ())), (1,), ())
    x, y, sizes = np.ones((2, 4), np.float32), np.ones((4, 3), np.float32), np.array([1, 2, 1])
    x[:, 0], y[3] = np.inf, np.inf
    found = lax.ragged_dot_general(x, y, sizes, lax.RaggedDotDimensionNumbers(*numbers))
    np.testing.assert_array_equal(found[1], np.full((2, 3), 2))
    theirs = jax.lax.RaggedDotDimensionNumbers(*numbers)
    same(found, jax.lax.ragged_dot_general(x, y, sizes, theirs))


def test_wrong_ragged_products() -> None:
    x, y, sizes = np.ones((6, 3), np.float32), np.ones((2, 3, 5), np.float32), np.array([2, 4])
    numbers = lax.RaggedDotDimensionNumbers

    def general(*given: Any) -> Any:
        return lax.ragged_dot_general(x, y, sizes, numbers(*given))

    product = (((1,), (1,)), ((), ()))
    for call, error, words in (
        (
            lambda: lax.ragged_dot(x, y, sizes, group_offset=sizes[:1]),
            Unimplemented,
            "group_offset",
        ),
        (lambda: lax.ragged_dot(x, y, sizes * 1.0), DtypeError, "integers; found float64"),
        (lambda: lax.ragged_dot(x, y, np.int32(3)), ShapeError, r"group_sizes .* shape \(\)"),
        (lambda: lax.ragged_dot(x, y, sizes[:1]), ShapeError, "with 2 groups; group_sizes"),
        (lambda: lax.ragged_dot(x, y, sizes[:, None]), ShapeError, r"shape \(2, 1\)"),
        (lambda: general(product, (0, 1), (0,)), ArgumentError, "one ragged dimension"),
        (lambda: general(product, (2,), (0,)), ArgumentError, "ragged dimension .* is 2"),
        (lambda: general(product, (0,), ()), ArgumentError, "takes 1 group dimensions"),
        (lambda: general(product, (1,), (0,)), ArgumentError, "takes 0 group dimensions"),
        (lambda: general(product, (0,), (1,)), ArgumentError, "which is contracted"),
        (lambda: numbers(1, 2, 3), ArgumentTypeError, r"numbers of dot_general, as in .* not iter"),
        (lambda: lax.ragged_dot(x[:, :2], y, sizes), ShapeError, "contracting dimensions"),
    ):
        with pytest.raises(error, match=words):
            call()
