"""`pmap`: what it computes, in all forms of arguments, with JAX as the oracle.

Same as JAX: `pmap`: axes, static arguments, results that stay on their devices.
"""

from __future__ import annotations

from collections import namedtuple
from functools import partial
from typing import Any

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from plugrt import Array, backends, config, device_put, devices, jit, pmap
from plugrt.errors import FloatingPointFault
from plugrt.lax import psum
from plugrt.sharding import PmapSharding
from support.jax_oracle import jax
from support.ops import add, log, mul, total

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


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_one_replica_for_each_slice(size: int) -> None:
    x = np.arange(size * 2, dtype=np.float32).reshape(size, 2)
    result = pmap(lambda x: mul(x, x))(x)
    check(result, jax.pmap(lambda x: x * x)(x))
    assert result.sharding == PmapSharding(devices()[:size])
    assert result.committed


@pytest.mark.parametrize("in_axes", [0, 1, 2, (1, 2), (0, None), (None, 1)])
@pytest.mark.parametrize("out_axes", [0, 1, (0, 2)])
def test_axes_in_and_out(in_axes: Any, out_axes: Any) -> None:
    ours = pmap(lambda x, y: (mul(x, 2), add(y, 1)), in_axes=in_axes, out_axes=out_axes)
    theirs = jax.pmap(lambda x, y: (x * 2, y + 1), in_axes=in_axes, out_axes=out_axes)
    check(ours(CUBE, CUBE), theirs(CUBE, CUBE))


def test_negative_axes_count_from_the_end() -> None:
    result = pmap(lambda x: mul(x, 2), in_axes=-1, out_axes=-1)(X)
    np.testing.assert_array_equal(result, X * 2)
    assert result.sharding == PmapSharding(devices()[:3], 1)


def test_a_list_of_axes_is_one_for_each_argument() -> None:
    result = pmap(add, in_axes=[0, None])(X, np.float32(1))
    np.testing.assert_array_equal(result, X + 1)


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


def test_structures_come_back() -> None:
    pair = namedtuple("pair", "a b")
    result = pmap(lambda p: [p, None, {"s": add(p.a, p.b)}])(pair(X, X))
    assert isinstance(result[0], pair)
    assert result[1] is None
    np.testing.assert_array_equal(result[2]["s"], X + X)


def test_keywords_are_mapped_over_their_first_axis() -> None:
    def f(x: Any, *, y: Any) -> Any:
        return add(x, y)

    ours = pmap(f, in_axes=1)(X.T.copy(), y=X)
    check(ours, jax.pmap(lambda x, *, y: x + y, in_axes=1)(X.T, y=X))


def test_defaults_are_used() -> None:
    def f(x: Any, y: Any = 2.0) -> Any:
        return mul(x, y)

    np.testing.assert_array_equal(pmap(f)(X), X * 2)
    np.testing.assert_array_equal(pmap(f, in_axes=(0, None))(X, 3.0), X * 3)


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


def test_weak_scalars_stay_weak() -> None:
    x = X.astype(ml_dtypes.bfloat16)
    result = pmap(add, in_axes=(0, None))(x, 1.0)
    assert result.dtype == ml_dtypes.bfloat16
    strong = pmap(add, in_axes=(0, None))(x, np.float32(1))
    assert strong.dtype == np.float32


@pytest.mark.parametrize(
    "dtype",
    [np.bool_, np.int8, np.uint64, np.float16, np.float64, np.complex64, ml_dtypes.bfloat16,
     ml_dtypes.float8_e4m3fn, ml_dtypes.int4],
)  # fmt: skip
def test_dtypes_go_through(dtype: Any) -> None:
    x = (np.arange(12).reshape(4, 3) % 2).astype(dtype)
    result = pmap(lambda x: (x,), in_axes=0, out_axes=1)(x)[0]
    assert result.dtype == dtype
    np.testing.assert_array_equal(np.asarray(result), x.T)


@pytest.mark.parametrize("shape", [(2,), (2, 0), (2, 3, 0)])
def test_scalars_and_empty_slices(shape: tuple[int, ...]) -> None:
    x = np.ones(shape, np.float32)
    np.testing.assert_array_equal(pmap(lambda x: add(x, 1))(x), x + 1)


def test_named_axis_and_collectives() -> None:
    ours = pmap(lambda x: psum(x, "i"), "i")(X)
    check(ours, jax.pmap(lambda x: jax.lax.psum(x, "i"), "i")(X))


def test_replicated_results_are_whole_on_each_device() -> None:
    f = pmap(lambda x: (x, psum(x, "i")), "i", out_axes=(0, None))
    _, total_ = f(X)
    assert total_.shape == (3,)
    assert total_.sharding.is_equivalent_to(PmapSharding(devices()[:4], None), 1)
    assert total_.is_fully_replicated
    np.testing.assert_array_equal(total_, X.sum(0))
    for shard in total_.addressable_shards:
        np.testing.assert_array_equal(shard.data, X.sum(0))


def test_devices_are_used_in_their_order() -> None:
    chosen = [devices()[i] for i in (5, 1, 3, 0)]
    result = pmap(lambda x: add(x, 1), devices=chosen)(X)
    assert [s.device for s in result.addressable_shards] == chosen
    np.testing.assert_array_equal(result, X + 1)
    np.testing.assert_array_equal(result.addressable_shards[1].data, X[1:2] + 1)


def test_backend_by_name() -> None:
    np.testing.assert_array_equal(
        pmap(lambda x: add(x, 1), backend=next(iter(backends())))(X), X + 1
    )


def test_axis_size_states_what_no_argument_tells() -> None:
    result = pmap(lambda: np.float32(3), axis_size=3)()
    np.testing.assert_array_equal(result, np.full(3, 3, np.float32))
    result = pmap(lambda x: add(x, 1), in_axes=None, axis_size=2)(X)
    np.testing.assert_array_equal(result, np.stack([X + 1] * 2))


def test_arrays_from_anywhere() -> None:
    f = pmap(lambda x, y: add(x, y), in_axes=(0, 1))
    far = device_put(X, devices()[6])
    spread = device_put(X.T.copy(), PmapSharding(devices()[4:8], 1))
    np.testing.assert_array_equal(f(far, spread), X + X)
    other_dim = device_put(np.ones((4, 4), np.float32), PmapSharding(devices()[:4], 1))
    np.testing.assert_array_equal(f(other_dim, other_dim), np.full((4, 4), 2))
    whole = device_put(X, PmapSharding(devices()[:4], None))
    np.testing.assert_array_equal(f(whole, X.T.copy()), X + X)


def test_host_arrays_of_any_layout() -> None:
    big = np.arange(48, dtype=">f4").reshape(4, 12)[:, ::2]
    np.testing.assert_array_equal(pmap(lambda x: add(x, 1))(big), big + 1)
    np.testing.assert_array_equal(pmap(lambda x: add(x, 1))(np.asfortranarray(X)), X + 1)


def test_the_source_may_change_after_the_call() -> None:
    x = X.copy()
    result = pmap(lambda x: add(x, 1))(x)
    x[:] = -5
    np.testing.assert_array_equal(result, X + 1)


def test_jit_within() -> None:
    inner = jit(lambda x, y: mul(x, y))
    result = pmap(lambda x: add(inner(x, x), inner(x, 2)))(X)
    np.testing.assert_array_equal(result, X * X + X * 2)


def test_jit_and_operations_take_the_results() -> None:
    result = pmap(lambda x: add(x, 1), out_axes=1)(X)
    np.testing.assert_array_equal(jit(lambda x: mul(x, 2))(result), (X.T + 1) * 2)
    np.testing.assert_array_equal(add(result, X.T.copy()), X.T * 2 + 1)
    np.testing.assert_allclose(np.asarray(total(result)), (X + 1).sum())


def test_closures_are_replicated() -> None:
    here = device_put(np.float32(2))
    far = device_put(np.arange(3, dtype=np.float32), devices()[7])
    split = device_put(np.ones((4, 3), np.float32), PmapSharding(devices()[:4]))
    large = np.full((2000, 3), 7, np.float32)
    result = pmap(lambda x: (add(mul(x, here), far), add(split, x), total(add(large, x))))(X)
    np.testing.assert_array_equal(result[0], X * 2 + np.arange(3))
    np.testing.assert_array_equal(result[1], 1 + np.stack([np.stack([r] * 4) for r in X]))
    np.testing.assert_allclose(np.asarray(result[2]), [(large + r).sum() for r in X], rtol=1e-6)


def test_forms_of_functions() -> None:
    class Model:
        scale = 3.0

        def __call__(self, x: Any) -> Any:
            return mul(x, self.scale)

    np.testing.assert_array_equal(pmap(partial(add, X[0]))(X), X + X[0])
    np.testing.assert_array_equal(pmap(Model())(X), X * 3)
    np.testing.assert_array_equal(pmap(add)(X, X), X + X)

    def documented(x: Any) -> Any:
        """Says what."""
        return x

    wrapped = pmap(documented)
    assert (wrapped.__name__, wrapped.__doc__) == ("documented", "Says what.")
    assert repr(wrapped) == "<pmapped documented>"


def test_debug_nans_looks_at_every_replica() -> None:
    f = pmap(lambda x: log(x))
    x = np.array([1.0, 2.0, -1.0], np.float32)
    assert np.isnan(np.asarray(f(x))[2])
    with config.override(debug_nans=True):
        with pytest.raises(FloatingPointFault, match=r"nan.* in log of"):
            f(x)
        np.testing.assert_allclose(np.asarray(f(abs(x))), np.log(abs(x)), rtol=1e-6)
    with config.override(debug_infs=True), pytest.raises(FloatingPointFault, match="inf"):
        f(np.zeros(2, np.float32))


def test_results_are_independent_of_jax_in_the_process() -> None:
    theirs = jax.pmap(lambda x: x + 1)(X)
    ours = pmap(lambda x: add(x, 1))(np.asarray(theirs))
    np.testing.assert_array_equal(ours, np.asarray(theirs + jnp.float32(1)))
