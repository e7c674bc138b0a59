"""Calls over several devices of jaxlib's client in the compiled core."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import devices, lax
from plugrt.errors import DeletedBuffer
from plugrt.execution.executables.client_launches import client_launches
from plugrt_cpu import adapter
from plugrt_cpu.many_device_executable import ManyDeviceExecutable
from support.cpu_launches import of_cpu_launches
from support.native_core import python_calls, runs_in_c

pytestmark = [runs_in_c, of_cpu_launches]
H = np.arange(8, dtype=np.float32).reshape(4, 2)


def _put(value: Any = H) -> plugrt.Array:
    mesh = plugrt.sharding.Mesh(np.array(devices("cpu")[:4]), ("x",))
    rows = plugrt.sharding.NamedSharding(mesh, plugrt.sharding.PartitionSpec("x"))
    made: plugrt.Array = plugrt.device_put(value, rows)
    return made


def _calls() -> dict[str, tuple[Callable[..., Any], plugrt.Array, Any]]:
    """Returns functions, their arguments, and their results."""
    x, four = _put(), devices("cpu")[:4]
    placed = plugrt.pmap(lambda a: a, devices=four)(H)
    total = plugrt.pmap(lambda a: lax.psum(a, "i"), axis_name="i", devices=four)
    return {
        "alone": (plugrt.jit(lambda a: (a + 1, a * a)), x, (H + 1, H * H)),
        "exchange": (plugrt.jit(lambda a: a.sum()), x, H.sum()),
        "pmap": (plugrt.pmap(lambda a: a * 2, devices=four), placed, H * 2),
        "psum": (total, placed, np.tile(H.sum(0), (4, 1))),
        "much": (plugrt.jit(lambda a: a @ a.T), _put(np.ones((256, 256), "f4")), None),
    }


def test_warm_calls_over_devices_run_no_python() -> None:
    calls, in_python = _calls(), {"execute", "execute_with_wait", "_execute", "_execute_usual"}
    assert in_python <= {*dir(ManyDeviceExecutable)}
    for function, x, _ in calls.values():
        for _ in range(2):
            function(x)
    for name, (function, x, expected) in calls.items():
        for _ in range(12):  # more launches than may be in flight
            with python_calls() as seen:
                found = function(x)
            assert in_python.isdisjoint(seen), name
        if name == "much":
            expected = np.full((256, 256), 256, "f4")
        for one, other in zip(plugrt.tree.leaves(found), plugrt.tree.leaves(expected), strict=True):
            np.testing.assert_array_equal(np.asarray(one), other, name)


@pytest.mark.parametrize("name", ["alone", "exchange"])
def test_an_array_that_lost_a_part_is_refused(name: str) -> None:
    function, x, _ = _calls()[name]
    function(x)
    function(x)
    x.addressable_shards[2].data.delete()
    with pytest.raises(DeletedBuffer, match="was deleted"):
        function(x)


def test_a_launcher_leaves_to_python_what_is_not_as_it_takes_it() -> None:
    function, x, expected = _calls()["exchange"]
    other = plugrt.device_put(H, x.sharding)
    assert float(function(other)) == float(function(x)) == expected
    assert float(function(_put(np.asarray(other)))) == expected
    assert float(function(plugrt.jit(lambda a: a + 0)(x))) == expected  # results as arguments


@pytest.mark.parametrize("in_core", [True, False])
def test_a_launch_may_launch_another_while_it_waits(in_core: bool) -> None:
    """As finalisers and signal handlers do, which run in the waiting thread."""
    function, x, expected = _calls()["exchange"]
    function(x)
    function(x)
    client = devices("cpu")[0].client
    launches = client_launches(client)
    waited: list[int] = []

    def make_wait(number: int) -> Callable[[], None]:
        def wait() -> None:
            waited.append(number)
            if len(waited) == 1:
                assert float(function(x)) == expected

        return wait

    entries = [(make_wait(i), True) for i in range(launches.bound)]
    launches._launches.clear()
    launches._launches.extend(entries)
    found: list[Any] = []

    def run() -> None:
        if in_core:
            found.append(float(function(x)))
        else:
            launches._await(launches._launches[0])

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    assert found == ([expected] if in_core else [])
    gone = [i for i, entry in enumerate(entries) if entry not in launches._launches]
    assert gone
    assert set(gone) <= set(waited)
    launches._launches.clear()


def test_a_deletion_waits_for_a_read_without_the_lock_of_launches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A finaliser in the read, which holds the memory lock, may delete: earlier a deadlock."""
    client: Any = devices("cpu")[0].client
    x, y = (plugrt.device_put(H, client.devices()[0]) for _ in range(2))
    launch_lock, real = client.launch_lock, threading.RLock()
    is_deleting, is_reading = threading.Event(), threading.Event()

    class Watched:
        """The memory lock, watched."""

        def acquire(self, blocking: bool = True) -> bool:
            if launch_lock._is_owned() and not is_deleting.is_set():
                is_deleting.set()
                is_reading.wait(60)
            return real.acquire(blocking)

        def release(self, *_: object) -> None:
            real.release()

        __enter__, __exit__ = acquire, release

    def read() -> None:
        is_deleting.wait(60)
        with real:
            is_reading.set()
            y.delete()

    watched: Any = Watched()
    monkeypatch.setattr(adapter, "memory_lock", watched)
    monkeypatch.setattr(adapter, "_attempt_memory_lock", adapter._attempt(watched))
    threads = [threading.Thread(target=run, daemon=True) for run in (read, x.delete)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert is_deleting.is_set()  # holding the launch lock
    assert not any(thread.is_alive() for thread in threads)
    assert x.is_deleted()
    assert y.is_deleted()


@pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="no such rule here: any call of Python may collect"
)
def test_no_finaliser_runs_while_a_deletion_has_the_lock_of_launches() -> None:
    """A finaliser might launch, and wait for a thread that waits for this lock."""
    client: Any = devices("cpu")[0].client
    x = plugrt.device_put(H, client.devices()[0])
    owned, before = list[bool](), gc.get_threshold()
    gc.callbacks.append(lambda *_: owned.append(client.launch_lock._is_owned()))
    gc.set_threshold(1)
    try:
        x.delete()
    finally:
        gc.set_threshold(*before)
        gc.callbacks.pop()
    assert owned
    assert not any(owned)
