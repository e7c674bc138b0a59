"""Arrays in parts on a real PJRT library: moved from device to device, not through the host."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import plugrt
from plugrt import jit, lax
from plugrt.capi import create_client, load_library
from plugrt.interface import Client
from support.effort import seeds
from support.shardings import check_moves
from support.traffic import move_by_programs, watch
from support.xla_cpu import library_path, needs_library

pytestmark = needs_library
X = np.arange(24, dtype=np.float32).reshape(4, 6)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    path = library_path()
    assert path is not None
    made = create_client(load_library(path), {"cpu_device_count": 4}, name="resharding")
    yield made
    plugrt.clear_caches()
    made.close()


@pytest.mark.parametrize("seed", seeds(6))
def test_from_any_sharding_to_any_other(
    seed: int, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    move_by_programs(monkeypatch)
    with watch(client, "put", "read") as traffic:
        check_moves(np.random.default_rng(seed), [*client.devices()], traffic)


def test_results_of_pmap_are_used_without_the_host(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = plugrt.pmap(lambda v: v + v, devices=client.devices())(X)
    move_by_programs(monkeypatch)
    with watch(client, "put", "read") as traffic:
        ys = jit(lambda v: v * v)(x), x + x
        y = *ys, lax.while_loop(lambda v: v[0, 1] < 9, lambda v: v + v, x)
    assert traffic == []
    for found, expected in zip(y, (4 * X * X, 4 * X, 16 * X), strict=True):
        np.testing.assert_array_equal(found, expected)
        assert found.sharding.is_equivalent_to(x.sharding, 2)
