"""`Client.buffers_from_host`: the parts of one array put on several devices in one call."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from plugrt import device_put, device_put_replicated, device_put_sharded, devices, pmap
from plugrt.errors import InvalidArgument, PlugrtError
from plugrt.interface import Client
from plugrt.sharding import PmapSharding
from support.ops import add
from support.traffic import Traffic

X = np.arange(32, dtype=np.float32).reshape(8, 4)


def _parts(n: int = 8) -> list[np.ndarray[Any, Any]]:
    return [X[i] for i in range(n)]


@pytest.mark.parametrize(
    ("put", "calls"),
    [
        pytest.param(lambda: pmap(add)(X, X), 2, id="pmap"),
        pytest.param(lambda: pmap(add, in_axes=(0, None))(X, 1.0), 2, id="pmap with a scalar"),
        pytest.param(lambda: device_put(X, PmapSharding(devices())), 1, id="device_put"),
        pytest.param(lambda: device_put([X, X], PmapSharding(devices(), None)), 2, id="replicated"),
        pytest.param(lambda: device_put_sharded(_parts(), devices()), 1, id="device_put_sharded"),
        pytest.param(lambda: device_put_replicated(X, devices()), 1, id="device_put_replicated"),
    ],
)
def test_one_call_of_the_backend_for_an_array(
    puts: Traffic, put: Callable[[], Any], calls: int
) -> None:
    put()
    assert len(puts) == calls
    assert [device for _, device in puts.arrays] == [*devices()] * calls


@pytest.mark.parametrize(
    "arguments",
    [
        (_parts(2), 3),
        ([], 0),
        ([X[0], X[0, :2]], 2),
        ([X[0], X[0].astype(int)], 2),
        (_parts(2), 2, "no such memory"),
    ],
)
def test_wrong_parts_and_devices_are_refused(arguments: tuple[Any, ...]) -> None:
    client = devices()[0].client
    hosts, count, *kind = arguments
    with pytest.raises(InvalidArgument):
        client.buffers_from_host(hosts, devices()[:count], *kind)
    with pytest.raises(PlugrtError):
        Client.buffers_from_host(client, hosts, devices()[:count], *kind)


def test_a_part_does_not_keep_the_others() -> None:
    client = devices()[0].client
    shards = client.buffers_from_host(_parts(2), devices()[:2])
    first, second = shards[0], weakref.ref(shards[1].raw)  # type: ignore[attr-defined]
    del shards
    gc.collect()
    assert second() is None
    np.testing.assert_array_equal(first.to_host(), X[0])
