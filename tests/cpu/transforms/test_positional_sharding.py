"""`PositionalSharding` in each function with shardings: device_put, jit, constraints; results."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import devices, get_backend, monitoring
from plugrt.errors import ArgumentMismatch, ShapeError
from plugrt.sharding import Mesh, NamedSharding, PositionalSharding
from plugrt.sharding import PartitionSpec as P
from support.behaviour import behaviour
from support.compiles import counting

A = np.arange(64, dtype=np.float32).reshape(8, 8)


@behaviour(103, "`PositionalSharding` divides arrays by places in an array of devices",
           jax="dropped it in 2025; this is as jax 0.4.35 had it")  # fmt: skip
def test_an_array_with_it() -> None:
    grid = PositionalSharding(devices()[:8]).reshape(2, 4)
    rows, columns = grid.replicate(1), grid.replicate(0)
    assert pickle.loads(pickle.dumps(columns)) == columns
    mesh = Mesh(np.array(devices()[:8]).reshape(2, 4), ("x", "y"))
    for sharding, spec in ((grid, P("x", "y")), (rows, P("x")), (columns, P(None, "y"))):
        x = plugrt.device_put(A, sharding)
        y = plugrt.device_put(x, NamedSharding(mesh, spec))
        pairs = zip(x.addressable_shards, y.addressable_shards, strict=True)
        for ours, named in pairs:
            assert (ours.device, ours.index, ours.replica_id) == (
                named.device, named.index, named.replica_id,
            )  # fmt: skip
            np.testing.assert_array_equal(ours.data, A[ours.index])
        back = plugrt.device_put(y, grid.T)
        np.testing.assert_array_equal(back, A)
        assert back.sharding == grid.T


@behaviour(103, "jit accepts and returns `PositionalSharding`; equivalents share a program",
           jax="dropped it in 2025; this is as jax 0.4.35 had it")  # fmt: skip
def test_programs_over_it() -> None:
    grid = PositionalSharding(devices()[:8]).reshape(2, 4)
    rows, whole = grid.replicate(1), grid.replicate()
    f = plugrt.jit(lambda x: xp.tanh(x), in_shardings=rows, out_shardings=grid.T)
    with pytest.raises(ShapeError, match=r"PositionalSharding.* size 7 cannot be divided by 2"):
        f(A[:7])
    y = f(A)
    assert y.sharding == grid.T
    np.testing.assert_allclose(y, np.tanh(A), rtol=1e-6)
    z = plugrt.jit(lambda x: plugrt.with_sharding_constraint(x + 1, rows) * 2)(y)
    np.testing.assert_allclose(z, 2 * np.tanh(A) + 2, rtol=1e-6)
    total = xp.sum(y, axis=0)
    assert isinstance(z.sharding, PositionalSharding)
    assert isinstance(total.sharding, PositionalSharding)
    assert total.sharding.ndim in (1, 2)  # replicated if the compiler divides no results
    if get_backend().platform != "numpy":
        assert z.sharding.is_equivalent_to(rows, 2)
    np.testing.assert_allclose(total, np.tanh(A).sum(0), rtol=1e-5)
    with pytest.raises(ArgumentMismatch, match="PositionalSharding"):
        f(plugrt.device_put(A, whole))
    mesh = Mesh(np.array(devices()[:8]).reshape(2, 4), ("x", "y"))
    g = plugrt.jit(lambda x: x * 3 - 1)
    g(plugrt.device_put(A, NamedSharding(mesh, P("x"))))
    with counting() as counts:
        again = g(plugrt.device_put(A, rows))
    assert counts[monitoring.COMPILE] == 0
    np.testing.assert_array_equal(again, A * 3 - 1)
    scalar = xp.sum(plugrt.device_put(A, grid))
    assert (scalar.sharding.is_fully_replicated, float(scalar)) == (True, A.sum())
