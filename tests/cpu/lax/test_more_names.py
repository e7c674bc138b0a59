"""`approx_max_k`, `approx_min_k`, `scatter_apply` and `rng_uniform`, beside JAX's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import lax
from plugrt.errors import (
    ArgumentError,
    ArgumentTypeError,
    DtypeError,
    NotAnArray,
    ShapeError,
    TracingError,
    Unimplemented,
)
from plugrt.sharding import NamedSharding, SingleDeviceSharding
from plugrt.sharding import PartitionSpec as P
from support.behaviour import behaviour
from support.effort import seeds
from support.jax_oracle import jax, same


@behaviour(
    19,
    "`lax.approx_max_k` and `approx_min_k` find all of the k, along any dimension",
    jax="the same on CPUs; approximates on TPUs",
)
@pytest.mark.parametrize("seed", seeds(2))
def test_approximations_are_exact(seed: int) -> None:
    random = np.random.default_rng(seed)
    x = random.permutation(60).reshape(3, 4, 5).astype(random.choice([np.float16, np.float32]))
    x[0, 0, 0], x[1, 2, 3] = np.inf, -np.inf
    for dimension in (0, 1, -1):
        for name in ("approx_max_k", "approx_min_k"):
            options = {"reduction_dimension": dimension, "recall_target": 0.9}
            found = getattr(lax, name)(x, 2, **options)
            same(found, list(getattr(jax.lax, name)(x, 2, **options)))


@behaviour(19, "`lax.scatter_apply` applies a function to places, as often as they are named")
@pytest.mark.parametrize("seed", seeds(2))
@pytest.mark.parametrize("mode", [None, "clip", "drop"])
def test_scatter_apply(mode: Any, seed: int) -> None:
    random = np.random.default_rng(seed)
    x = random.integers(0, 9, (5, 4)).astype(random.choice([np.int32, np.float32]))
    rows = random.integers(0, 7, (6, 1)).astype(np.int32)
    shift = x.dtype.type(random.integers(3))
    for window, inserted, shape in (((1,), (0,), (6, 4)), ((0, 1), (), (6, 2, 3))):
        window = tuple(i + (0 if inserted else 1) for i in window)
        ours = lax.ScatterDimensionNumbers(window, inserted, (0,))
        theirs = jax.lax.ScatterDimensionNumbers(window, inserted, (0,))
        options: Any = {"update_shape": shape, "mode": mode}
        found = lax.scatter_apply(x, rows, lambda v: 2 * v + shift, ours, **options)
        expected = jax.lax.scatter_apply(x, rows, lambda v: 2 * v + shift, theirs, **options)
        same(found, expected)


def test_numbers_of_the_backends_generator() -> None:
    draw = plugrt.jit(lambda a, b: lax.rng_uniform(a, b, (1000,)))
    for low, high in ((np.float32(-1), np.float32(3)), (np.int32(2), np.int32(5))):
        first, second = (np.asarray(draw(low, high)) for _ in range(2))
        assert first.dtype == low.dtype
        assert ((low <= first) & (first < high)).all()
        assert (first != second).any()
        assert len(set(first.tolist())) == 3 or len(set(first.tolist())) > 900
    assert lax.rng_uniform(0.0, 1.0, ()).shape == ()


AT = np.zeros((1, 1), np.int32)
NUMBERS = lax.ScatterDimensionNumbers((), (0,), (0,))
V = np.ones(3, np.float32)
REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no k": (lambda: lax.approx_max_k(V, 0), ArgumentError, "between 1 and 3"),
    "too large a k": (lambda: lax.approx_min_k(V, 4), ArgumentError, "between 1 and 3"),
    "integers": (lambda: lax.approx_max_k(V.astype(int), 1), DtypeError, "takes floats"),
    "a scalar": (lambda: lax.approx_max_k(V[0], 1), ArgumentTypeError, "one dimension"),
    "a target": (lambda: lax.approx_max_k(V, 1, recall_target=2), ArgumentError, "fraction"),
    "parts": (
        lambda: lax.approx_max_k(V, 1, aggregate_to_topk=False), Unimplemented, "aggregate_to"),
    "another dtype": (
        lambda: lax.scatter_apply(V, AT, lambda x: x > 0, NUMBERS, update_shape=(1,)),
        DtypeError, r"found bool\[\]"),
    "no number": (
        lambda: lax.scatter_apply(V, AT, lambda x: "x", NUMBERS, update_shape=(1,)),
        NotAnArray, "the result of func of lax.scatter_apply"),
    "another shape of updates": (
        lambda: lax.scatter_apply(V, AT, lambda x: x, NUMBERS, update_shape=(2,)),
        TracingError, "lax.scatter_apply of"),
    "arrays": (lambda: lax.rng_uniform(V, 1.0, (2,)), ArgumentError, "takes scalars"),
    "two dtypes": (lambda: lax.rng_uniform(V[0], np.int32(3), (2,)), DtypeError, "rng_uniform"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_calls_are_named(case: str) -> None:
    call, error, words = REFUSED[case]
    with pytest.raises(error, match=words):
        call()


def test_filled_arrays_are_divided() -> None:
    """Same as JAX: `lax.full` and `lax.full_like` with a sharding, and like a struct."""
    mesh = plugrt.make_mesh((4,), ("x",))
    rows = NamedSharding(mesh, P("x"))
    x = plugrt.device_put(np.arange(8, dtype=np.float32))
    struct = plugrt.ShapeDtypeStruct((8,), "int16", sharding=rows)
    for make in (
        lambda: lax.full((8,), 2.0, sharding=rows),
        lambda: lax.full_like(x, 2, sharding=rows),
        lambda: lax.full_like(struct, 2),
    ):
        for result in (make(), plugrt.jit(make)()):
            assert result.sharding.is_equivalent_to(rows, 1)
            assert result.tolist() == [2] * 8
    assert lax.full_like(struct, 2).dtype == np.int16
    assert lax.full_like(struct, 2, shape=()).sharding.num_devices == 1
    abstract = struct.update(sharding=NamedSharding(mesh.abstract_mesh, P("x")))
    assert lax.full_like(abstract, 2).sharding.num_devices == 1
    there = SingleDeviceSharding(plugrt.devices()[2])
    assert lax.full((2,), 1, np.int8, sharding=there).sharding == there
    with pytest.raises(ArgumentTypeError, match="takes a sharding, or None; got sharding='x'"):
        lax.full((8,), 1, sharding="x")  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="7 cannot be divided by 4"):
        lax.full((7,), 1, sharding=rows)
