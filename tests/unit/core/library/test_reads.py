"""Arrays of a PJRT library read in the compiled core: what Python would read, and how."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt.capi.buffers.buffer import Buffer
from plugrt.capi.buffers.native_read import SMALL_BYTES
from plugrt.errors import DeletedBuffer, PjrtError
from plugrt.interface import Client
from plugrt.native.native_core import core
from support.library_client import default_client
from support.native_core import python_calls, runs_in_c
from support.xla_cpu import needs_library

pytestmark = [
    needs_library,
    runs_in_c,
]
H = np.arange(4, dtype=np.float32)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with default_client("core reads") as made:
        yield made


def _read(array: Any, wanted: Any = H) -> list[str]:
    """Reads an array, and returns the names of the Python functions that run meanwhile."""
    with python_calls() as seen:
        host = np.asarray(array)
    np.testing.assert_array_equal(host, wanted)
    assert (host.dtype, host.flags.writeable) == (H.dtype, False)
    assert array.__array__() is array.__array__()
    assert np.shares_memory(np.asarray(array), host)  # from Python 3.12 on a view of the one kept
    return seen


@pytest.mark.parametrize("size", [4, 1 << 12])
def test_the_first_read_of_a_result_is_not_python_s(client: Client, size: int) -> None:
    """What is small is copied, since a view would cost more; the rest is viewed."""
    h = np.arange(size, dtype=np.float32)
    double = plugrt.jit(lambda a: a * 2)
    x = plugrt.device_put(h, client.devices()[0])
    made = [double(x) for _ in range(3)]
    assert "_host" in _read(made[0], 2 * h)  # which finds how such buffers are read
    made[1].block_until_ready()
    assert [x._shards._awaited for x in made] == [False, True, False]  # the next need not wait
    called = _read(made[1], 2 * h)
    viewed = np.asarray(made[1]).ctypes.data == made[1].unsafe_buffer_pointer()
    assert viewed == (h.nbytes > SMALL_BYTES)
    assert not {"_host", "read_to_host", "__buffer__"} & {*called}, called
    with plugrt.transfer_guard_device_to_host("log"):  # whose question is Python's
        assert "_host" in _read(made[2], 2 * h)
    durations: list[str] = []

    def note(event: str, duration: float, /, **_: str | int) -> None:
        durations.append(event)

    plugrt.monitoring.register_event_duration_secs_listener(note)
    try:
        assert "_host" in _read(double(x), 2 * h)
    finally:
        plugrt.monitoring.clear_event_listeners()
    assert plugrt.monitoring.READ in durations


def test_arrays_that_are_not_what_their_buffer_is_are_read_by_python(client: Client) -> None:
    """Of pmap's on one device the shape is another than the buffer's."""
    double = plugrt.pmap(lambda a: a * 2, devices=client.devices()[:1])
    made = [double(H[None]) for _ in range(3)]
    for x in made:
        assert np.asarray(x).shape == (1, 4)
        np.testing.assert_array_equal(x, 2 * H[None])


def test_what_is_deleted_or_fails_has_python_s_errors(client: Client) -> None:
    double = plugrt.jit(lambda a: a * 2)
    x = plugrt.device_put(H, client.devices()[0])
    for _ in range(2):
        _read(double(x), 2 * H)
    gone = double(x)
    gone.delete()
    with pytest.raises(DeletedBuffer, match="deleted"):
        np.asarray(gone)
    retired = double(x)
    held: Any = retired._shards
    assert type(held) is Buffer
    held.delete()
    with pytest.raises(DeletedBuffer, match="deleted"):
        np.asarray(retired)
    with pytest.raises(TypeError):
        retired.__array__(1, 2, 3)


def test_an_array_may_be_deleted_while_others_read_it(client: Client) -> None:
    double = plugrt.jit(lambda a: a * 2)
    x = plugrt.device_put(H, client.devices()[0])
    for _ in range(2):
        _read(double(x), 2 * H)
    faults: list[Any] = []

    def read(array: Any, begin: threading.Barrier) -> None:
        begin.wait()
        try:
            if not np.array_equal(np.asarray(array), 2 * H):
                faults.append(np.asarray(array))
        except DeletedBuffer:
            pass
        except PjrtError as error:
            faults.append(error)

    for _ in range(50):
        array, begin = double(x), threading.Barrier(3)
        threads = [threading.Thread(target=read, args=(array, begin)) for _ in range(2)]
        for thread in threads:
            thread.start()
        begin.wait()
        array.delete()
        for thread in threads:
            thread.join()
    assert not faults
    assert core.calls_under_way() == 0
