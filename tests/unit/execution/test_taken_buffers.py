"""Taking, copying and restoring the buffers of arrays, as launches and other threads do."""

from __future__ import annotations

import gc
import weakref
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import device_put, jit
from plugrt.errors import DeletedBuffer
from plugrt.execution.arrays.array import array_holding
from plugrt.execution.arrays.array_making import share_buffers
from plugrt.execution.launches.donation import Donation, Taken, give_back, raise_explained
from support.cpu_launches import of_cpu_launches
from support.ops import add
from support.watched_calls import at_calls

N = np.arange(4096, dtype=np.float32)


def test_memory_is_freed_with_the_array() -> None:
    x = add(device_put(np.ones(3)), 1)
    buffer = weakref.ref(x._shards)
    reference = weakref.ref(x)
    del x
    gc.collect()
    assert reference() is None
    assert buffer() is None


@of_cpu_launches
@pytest.mark.parametrize("general", [False, True])
def test_a_buffer_in_use_is_copied_to_be_donated(general: bool) -> None:
    """Otherwise jaxlib hangs both launches if the other one has it as one of two arguments."""
    plain = jit(lambda x, y: add(x, y), donate_argnums=0)
    both = jit(lambda x, y: (add(add(x, y), N), y), donate_argnums=0)
    f, expected = (both, 3 * N) if general else (plain, 2 * N)
    y = add(device_put(N), 0)
    for _ in range(3):
        x = add(device_put(N), 0)
        used = x._shards  # a reference as of another launch
        np.testing.assert_array_equal(plugrt.tree.leaves(f(x, y))[0], expected)
        assert x.is_deleted()
        assert not used.is_deleted()
        np.testing.assert_array_equal(np.asarray(used), N)


def test_sharing_an_array_that_is_being_donated_is_refused() -> None:
    """As by another thread, since the core donates without a lock."""
    double = jit(lambda x: add(x, x), donate_argnums=0)
    for _ in range(3):  # the core makes later calls
        double(device_put(N))
    x = device_put(N)
    donated = at_calls([array_holding], lambda *_: double(x))
    with donated, pytest.raises(DeletedBuffer, match="was donated to '<lambda>'"):
        share_buffers(x, x._aval)


def test_an_array_deleted_during_a_launch_is_not_restored() -> None:
    donation = Donation(SimpleNamespace(name="f", kept=(0, 1), donated=(0, 1)))  # type: ignore[arg-type]
    given = [device_put(N), device_put(N)]
    taken: Taken = []
    donation.take(given, [x._shards for x in given], taken)
    given[0].delete()
    give_back(taken)
    assert [x.is_deleted() for x in given] == [True, False]
    with pytest.raises(DeletedBuffer, match="was donated to 'f'"):
        np.asarray(given[0])
    np.testing.assert_array_equal(np.asarray(given[1]), N)


@pytest.mark.parametrize("kind", ["one", "two", "many", "compiled", "passed", "donated"])
def test_a_failing_launch_is_named_by_a_concurrent_one(kind: str) -> None:
    """A failing launch restores the buffers before this launch knows why they were missing."""
    functions: dict[str, Any] = {
        "one": jit(lambda x: add(x, x)),
        "two": jit(lambda x, y: add(x, y)),
        "many": jit(lambda x, y: (add(x, y), add(x, x))),
        "compiled": jit(lambda x: add(x, x)).lower(device_put(N)).compile(),
        "passed": jit(lambda x: (x, add(x, x))),
        "donated": jit(lambda x, y: add(x, y), donate_argnums=1),
    }
    function, count = functions[kind], 2 if kind in ("two", "many", "donated") else 1
    x = device_put(N)
    for _ in range(3):
        function(*[x, device_put(N)][:count])
    others = Donation(SimpleNamespace(name="f", kept=(0,), donated=(0,)))  # type: ignore[arg-type]
    taken: Taken = []
    others.take([x], [x._shards], taken)
    said = r"'<lambda>': the array float32\[4096\] was donated meanwhile to a launch that failed"
    meanwhile = at_calls([raise_explained], lambda *_: give_back(taken))
    with meanwhile, pytest.raises(DeletedBuffer, match=said):
        function(*[x, device_put(N)][:count])
    give_back(taken)
    function(*[x, device_put(N)][:count])
