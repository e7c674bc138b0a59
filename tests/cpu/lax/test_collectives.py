from __future__ import annotations

from itertools import product
from typing import Any

import jax
import numpy as np
import pytest

import plugrt
from plugrt import jit, lax
from plugrt.errors import ArgumentError, DtypeError, ShapeError, UnboundAxis
from support.jax_oracle import same

X = (np.arange(32, dtype=np.float32).reshape(4, 4, 2) * 7) % 11
N = np.arange(8, dtype=np.int32).reshape(4, 2)
GROUPS = [[0, 2], [1, 3]]


def replicated(function: Any, *args: Any) -> Any:
    """Returns the results of a function on 4 devices, along the axis "i"."""
    return plugrt.pmap(function, "i", devices=plugrt.devices()[:4])(*args)


def compare(ours: Any, theirs: Any, *args: Any) -> None:
    """Asserts that a function of collectives gives on 4 devices what JAX's pmap gives."""
    found = replicated(ours, *args)
    expected = jax.pmap(theirs, axis_name="i", devices=jax.devices()[:4])(*args)
    same(found, expected, rtol=1e-6)


def test_reductions_match_jax() -> None:
    names = ("psum", "pmean", "pmax", "pmin")
    compare(
        lambda x, n: tuple(getattr(lax, f)(v, "i") for f in names for v in (x, n)),
        lambda x, n: tuple(getattr(jax.lax, f)(v, "i") for f in names for v in (x, n)),
        X,
        N,
    )


def test_reductions_within_groups_match_jax() -> None:
    found = replicated(
        lambda x: (
            lax.psum(x, "i", axis_index_groups=GROUPS),
            lax.pmean(x, "i", axis_index_groups=GROUPS),
            lax.pmax(x, "i", axis_index_groups=GROUPS),
            lax.all_gather(x, "i", axis_index_groups=GROUPS),
        ),
        X,
    )
    total, mean, highest, gathered = found
    same(total, np.stack([X[0] + X[2], X[1] + X[3]] * 2))
    same(mean, np.stack([X[0] + X[2], X[1] + X[3]] * 2) / 2)
    same(highest, np.stack([np.maximum(X[0], X[2]), np.maximum(X[1], X[3])] * 2))
    same(gathered, np.stack([X[[0, 2]], X[[1, 3]]] * 2))


def test_booleans_are_counted() -> None:
    flags = np.array([[True], [False], [True], [True]])
    same(replicated(lambda x: lax.psum(x, "i"), flags), np.full((4, 1), 3, np.int32))


def test_python_scalars_are_multiplied_without_communication() -> None:
    def run(x: Any) -> Any:
        assert lax.psum(1, "i") == 4
        assert lax.psum({"a": 2.5, "b": True}, "i") == {"a": 10.0, "b": 4}
        assert lax.pmean(3, "i") == 3.0
        assert lax.axis_size("i") == 4
        return x

    same(replicated(run, X), X)


def test_gathers_and_permutations_match_jax() -> None:
    def run(m: Any) -> Any:
        return lambda x: (
            m.all_gather(x, "i"),
            m.all_gather(x, "i", axis=1, tiled=True),
            m.all_gather(x, "i", axis=-1),
            m.ppermute(x, "i", [(0, 1), (1, 2), (3, 0)]),
            m.pshuffle(x, "i", [3, 2, 0, 1]),
            m.axis_index("i"),
        )

    compare(run(lax), run(jax.lax), X)


def test_exchanges_match_jax() -> None:
    y = np.arange(4 * 4 * 3 * 8, dtype=np.float32).reshape(4, 4, 3, 8)

    def run(m: Any) -> Any:
        return lambda y: (
            m.all_to_all(y, "i", 0, 0),
            m.all_to_all(y, "i", 0, 1),
            m.all_to_all(y, "i", 0, 2),
            m.all_to_all(y, "i", 0, 0, tiled=True),
            m.all_to_all(y, "i", 2, 0, tiled=True),
            m.pswapaxes(y, "i", 0),
            m.psum_scatter(y, "i"),
            m.psum_scatter(y, "i", scatter_dimension=2, tiled=True),
        )

    compare(run(lax), run(jax.lax), y)


def test_exchange_with_the_split_axis_after_the_other_matches_jax() -> None:
    y = np.arange(4 * 3 * 4, dtype=np.float32).reshape(4, 3, 4)

    def run(m: Any) -> Any:
        return lambda y: m.all_to_all(y, "i", 1, 0)

    compare(run(lax), run(jax.lax), y)


def test_two_axes_number_the_replicas_row_by_row() -> None:
    x = np.arange(8, dtype=np.int32)

    def run(v: Any) -> Any:
        return (
            lax.axis_index("a"),
            lax.axis_index("b"),
            lax.axis_index(("b", "a")),
            lax.psum(v, "a"),
            lax.psum(v, "b"),
            lax.psum(v, ("a", "b")),
            lax.all_gather(v, ("b", "a")),
            lax.ppermute(v, "b", [(0, 1)]),
        )

    grid = x.reshape(2, 4)
    a, b, ba, over_a, over_b, over_both, gathered, moved = [
        np.asarray(part).reshape(8, -1).squeeze()
        for part in plugrt.pmap(plugrt.pmap(run, "b"), "a")(x.reshape(2, 4))
    ]
    same(a, x // 4)
    same(b, x % 4)
    same(ba, (x % 4) * 2 + x // 4)
    same(over_a, np.tile(grid.sum(0, dtype=np.int32), 2))
    same(over_b, np.repeat(grid.sum(1, dtype=np.int32), 4))
    same(over_both, np.full(8, 28, np.int32))
    same(gathered, np.tile(grid.T.ravel(), (8, 1)))
    same(moved, np.array([0, 0, 0, 0, 0, 4, 0, 0], np.int32))


def test_collectives_work_within_control_flow_and_on_pytrees() -> None:
    def run(x: Any) -> Any:
        return lax.fori_loop(0, 3, lambda _, v: {"v": lax.psum(v, "i")["v"]}, {"v": x})["v"]

    same(replicated(run, X), np.broadcast_to(X.sum(0) * 16, X.shape))


def test_an_axis_that_is_not_bound_is_refused_with_those_that_are() -> None:
    with pytest.raises(UnboundAxis, match="unbound axis name: 'i'; collectives are called within"):
        lax.psum(X, "i")
    with pytest.raises(
        UnboundAxis, match="'j'; axes that a surrounding pmap or shard_map has bound: 'i'"
    ):
        replicated(lambda x: lax.psum(x, "j"), X)
    with pytest.raises(UnboundAxis, match="bound: none"):
        jit(lambda x: lax.psum(x, "i"))(X)
    with pytest.raises(NameError):
        lax.axis_index("i")


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda x: lax.ppermute(x, "i", [(0, 1), (0, 2)]), ArgumentError, "each index once"),
        (lambda x: lax.ppermute(x, "i", [(0, 9)]), ArgumentError, "indices 0 to 3"),
        (lambda x: lax.pshuffle(x, "i", [0, 0, 1, 2]), ArgumentError, "permutation of 0 to 3"),
        (
            lambda x: lax.all_gather(x, "i", axis_index_groups=[[0, 1, 2], [3]]),
            ArgumentError,
            "one length",
        ),
        (lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1]]), ArgumentError, "each index"),
        (lambda x: lax.all_gather(x, "i", axis=5), ShapeError, "axis of all_gather is 5"),
        (lambda x: lax.all_to_all(x, "i", 1, 0), ShapeError, "length 2 must equal"),
        (
            lambda x: lax.psum_scatter(x, "i", scatter_dimension=1, tiled=True),
            ShapeError,
            "a multi",
        ),
        (lambda x: lax.pmax(lax.complex(x, x), "i"), DtypeError, "complex64"),
    ],
)
def test_what_cannot_be_is_refused(function: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        replicated(function, X)


@pytest.mark.parametrize(
    ("of", "kind"),
    [
        *product(("psum", "pmean"), (bool, int, float, complex)),
        *product(("pmax", "pmin"), (int, float)),  # complex numbers have no order
    ],
)
def test_reductions_are_as_weakly_typed_as_in_jax(of: str, kind: type) -> None:
    """The dtype of a product with an array shows whether a result is weakly typed."""
    narrow = np.ones(2, np.float16 if kind is float else np.int8)

    def scaled(n: Any) -> Any:
        return lambda x, y: getattr(n, of)(x, "i") * y

    ours = plugrt.pmap(scaled(lax), "i", in_axes=(None, 0), devices=plugrt.devices()[:2])
    theirs = jax.pmap(scaled(jax.lax), "i", in_axes=(None, 0), devices=jax.devices()[:2])
    assert ours(kind(2), narrow).dtype == theirs(kind(2), narrow).dtype
