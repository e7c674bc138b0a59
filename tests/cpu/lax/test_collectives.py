from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import plugrt
from plugrt import lax
from plugrt.errors import ArgumentError, DtypeError, ShapeError
from support.jax_oracle import same

X = (np.arange(32, dtype=np.float32).reshape(4, 4, 2) * 7) % 11


def replicated(function: Any, *args: Any) -> Any:
    """Returns the results of a function on 4 devices, along the axis "i"."""
    return plugrt.pmap(function, "i", devices=plugrt.devices()[:4])(*args)


def compare(ours: Any, theirs: Any, *args: Any) -> None:
    """Asserts that a function of collectives computes on 4 devices the result of JAX's pmap."""
    found = replicated(ours, *args)
    expected = jax.pmap(theirs, axis_name="i", devices=jax.devices()[:4])(*args)
    same(found, expected, rtol=1e-6)


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
def test_wrong_axes_and_permutations_are_refused(
    function: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        replicated(function, X)


def test_an_axis_of_pmap_may_be_named_by_any_hashable_value() -> None:
    name = frozenset({"an axis"})
    each = plugrt.pmap(
        lambda v: (lax.psum(v, name), lax.all_gather(v, name), lax.axis_index(name)), name
    )
    total, gathered, index = each(np.asarray([1.0, 2.0], np.float32))
    np.testing.assert_array_equal(total, [3, 3])
    np.testing.assert_array_equal(gathered, [[1, 2], [1, 2]])
    np.testing.assert_array_equal(index, [0, 1])
