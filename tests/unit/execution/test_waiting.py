"""`block_until_ready` of several arrays, which a backend may wait for at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import monitoring
from plugrt.errors import DeletedBuffer
from plugrt.execution.arrays.array_contents import await_together

H = np.arange(8, dtype=np.float32).reshape(4, 2)


def _arrays() -> dict[str, plugrt.Array]:
    """Returns an array on one device, one whose parts were put, one of a launch, one of a pmap."""
    four = plugrt.devices()[:4]
    mesh = plugrt.sharding.Mesh(np.array(four), ("x",))
    rows = plugrt.sharding.NamedSharding(mesh, plugrt.sharding.PartitionSpec("x"))
    put = plugrt.device_put(H, rows)
    return {
        "one device": plugrt.device_put(H),
        "put": put,
        "jit": plugrt.jit(lambda a: a + 1)(put),
        "exchange": plugrt.jit(lambda a: a @ a.T)(put),
        "pmap": plugrt.pmap(lambda a: a * 2, devices=four)(H),
    }


def test_arrays_of_all_kinds_are_there_after_one_wait() -> None:
    arrays = _arrays()
    tree = {"a": [*arrays.values()], "b": (1, None, "text")}
    assert plugrt.block_until_ready(tree) is tree
    for array in arrays.values():
        assert array.is_ready()
        assert array.block_until_ready() is array


@pytest.mark.parametrize("name", ["one device", "put", "jit", "exchange", "pmap"])
def test_a_deleted_array_among_others_is_refused(name: str) -> None:
    arrays = _arrays()
    arrays[name].delete()
    assert not await_together((x._aval, x._shards) for x in arrays.values())
    for wait in (lambda: plugrt.block_until_ready(arrays), arrays[name].block_until_ready):
        with pytest.raises(DeletedBuffer):
            wait()


@pytest.mark.parametrize("name", ["put", "jit"])
@pytest.mark.parametrize("use", [lambda x: x, lambda x: [x, x + 1]])
def test_a_deleted_part_is_refused(name: str, use: Callable[[Any], Any]) -> None:
    x = _arrays()[name]
    waited = use(x)
    x._shards[2].delete()
    with pytest.raises(DeletedBuffer):
        plugrt.block_until_ready(waited)


def test_a_listener_hears_of_each_array() -> None:
    heard: list[str] = []

    def listen(event: str, duration: float, /, **_: Any) -> None:
        heard.append(event)

    arrays = _arrays()
    plugrt.block_until_ready(arrays)
    monitoring.register_event_duration_secs_listener(listen)
    try:
        plugrt.block_until_ready(arrays)
    finally:
        monitoring.unregister_event_duration_listener(listen)
    assert heard.count(monitoring.AWAIT) == len(arrays)
