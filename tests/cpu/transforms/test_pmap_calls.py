"""`pmap`: its results, in all forms of arguments, with JAX as the oracle.

Same as JAX: `pmap`: axes, static arguments, results that stay on their devices.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plugrt import Array, device_put, devices, pmap
from plugrt.sharding import PmapSharding
from support.jax_oracle import jax
from support.ops import add, mul, total

X = np.arange(12, dtype=np.float32).reshape(4, 3)
CUBE = np.arange(64, dtype=np.float32).reshape(4, 4, 4)


def check(ours: Any, theirs: Any) -> None:
    """Asserts that two pytrees of results are equal in structure, shape, dtype and value."""
    mine, spec = jax.tree.flatten(ours, is_leaf=lambda x: isinstance(x, Array))
    expected, expected_spec = jax.tree.flatten(theirs)
    assert spec == expected_spec
    for a, b in zip(mine, expected, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6)


@pytest.mark.parametrize("in_axes", [0, 1, 2, (1, 2), (0, None), (None, 1)])
@pytest.mark.parametrize("out_axes", [0, 1, (0, 2)])
def test_axes_in_and_out(in_axes: Any, out_axes: Any) -> None:
    ours = pmap(lambda x, y: (mul(x, 2), add(y, 1)), in_axes=in_axes, out_axes=out_axes)
    theirs = jax.pmap(lambda x, y: (x * 2, y + 1), in_axes=in_axes, out_axes=out_axes)
    check(ours(CUBE, CUBE), theirs(CUBE, CUBE))


def test_axes_are_pytree_prefixes() -> None:
    def ours(state: Any, batch: Any) -> Any:
        return {"w": mul(state["w"], batch["x"]), "n": (state["n"], batch["y"][0])}

    state = {"w": np.float32(2), "n": np.arange(4, dtype=np.int32)}
    batch = {"x": X, "y": (X.T.copy(), None)}
    axes = ({"w": None, "n": 0}, {"x": 0, "y": 1})
    outs = {"w": 1, "n": 0}
    theirs = jax.pmap(
        lambda s, b: {"w": s["w"] * b["x"], "n": (s["n"], b["y"][0])}, in_axes=axes, out_axes=outs
    )
    check(pmap(ours, in_axes=axes, out_axes=outs)(state, batch), theirs(state, batch))


def test_static_arguments() -> None:
    seen = []

    def f(x: Any, power: int, y: Any) -> Any:
        seen.append(power)
        for _ in range(power):
            x = mul(x, y)
        return x

    g = pmap(f, in_axes=(0, None, 1), static_broadcasted_argnums=1)
    theirs = jax.pmap(lambda x, n, y: x * y**n, in_axes=(0, None, 1), static_broadcasted_argnums=1)
    for power in (2, 3, 2):
        check(g(X, power, X.T.copy()), theirs(X, power, X.T))
    assert seen == [2, 3]


@pytest.mark.parametrize("shape", [(2,), (2, 0), (2, 3, 0)])
def test_scalars_and_empty_slices(shape: tuple[int, ...]) -> None:
    x = np.ones(shape, np.float32)
    np.testing.assert_array_equal(pmap(lambda x: add(x, 1))(x), x + 1)


def test_axis_size_states_what_no_argument_tells() -> None:
    result = pmap(lambda: np.float32(3), axis_size=3)()
    np.testing.assert_array_equal(result, np.full(3, 3, np.float32))
    result = pmap(lambda x: add(x, 1), in_axes=None, axis_size=2)(X)
    np.testing.assert_array_equal(result, np.stack([X + 1] * 2))


def test_closures_are_replicated() -> None:
    here = device_put(np.float32(2))
    far = device_put(np.arange(3, dtype=np.float32), devices()[7])
    split = device_put(np.ones((4, 3), np.float32), PmapSharding(devices()[:4]))
    large = np.full((2000, 3), 7, np.float32)
    result = pmap(lambda x: (add(mul(x, here), far), add(split, x), total(add(large, x))))(X)
    np.testing.assert_array_equal(result[0], X * 2 + np.arange(3))
    np.testing.assert_array_equal(result[1], 1 + np.stack([np.stack([r] * 4) for r in X]))
    np.testing.assert_allclose(np.asarray(result[2]), [(large + r).sum() for r in X], rtol=1e-6)


def test_negative_axes_count_from_the_end() -> None:
    result = pmap(lambda x: mul(x, 2), in_axes=-1, out_axes=-1)(X)
    np.testing.assert_array_equal(result, X * 2)
    assert result.sharding == PmapSharding(devices()[:3], 1)


def test_a_list_of_axes_is_one_for_each_argument() -> None:
    result = pmap(add, in_axes=[0, None])(X, np.float32(1))
    np.testing.assert_array_equal(result, X + 1)


def test_host_arrays_of_any_layout() -> None:
    big = np.arange(48, dtype=">f4").reshape(4, 12)[:, ::2]
    np.testing.assert_array_equal(pmap(lambda x: add(x, 1))(big), big + 1)
    np.testing.assert_array_equal(pmap(lambda x: add(x, 1))(np.asfortranarray(X)), X + 1)
