"""Reads of host-addressable memory: a view that outlives its buffer."""

from __future__ import annotations

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import numpy as np
import pytest

from plugrt.capi import Library, create_client
from plugrt.capi.client.async_transfers import AsyncTransfer
from plugrt.errors import DeletedBuffer, InvalidArgument
from plugrt.interface import Client, CompileOptions, Device, TensorType
from support.xla_cpu import DONATED, add, run_python

LARGE = np.arange(1 << 16, dtype=np.float32)
KIND = "tensor<65536xf32>"


def test_donated_memory_is_not_written_while_it_is_viewed(client: Client, device: Device) -> None:
    """The library then copies the argument for the launch; the caller's array is still deleted."""
    loaded = client.compile(add(KIND, DONATED), CompileOptions())
    client.buffer_from_host(LARGE, device).to_host()  # the first read of a type is in Python
    for viewed in (True, False):
        taken, other = (client.buffer_from_host(LARGE, device) for _ in range(2))
        where = taken.unsafe_pointer()
        out = taken.to_host() if viewed else None
        ((result,),) = loaded.execute([(taken,), (other,)])
        assert taken.is_deleted()
        assert not other.is_deleted()
        assert (result.unsafe_pointer() == where) is not viewed  # type: ignore[attr-defined]
        np.testing.assert_array_equal(result.to_host(), 2 * LARGE)
        if out is not None:
            np.testing.assert_array_equal(out, LARGE)


def test_exit_with_a_view() -> None:
    code = """
import atexit, os
import numpy as np
kept = []
atexit.register(lambda: print(kept[0].sum(), kept[1].sum()))
from plugrt.capi import create_client, load_library
client = create_client(load_library(os.environ["PATH_OF_LIBRARY"]), {}, name="x")
for _ in range(2):  # the first of a type by Python, the next in the core
    put = client.buffer_from_host(np.ones(1 << 16, np.float32), client.devices()[0])
    kept.append(put.to_host())
del put
"""
    done = run_python(code)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "65536.0 65536.0", "")


def test_short_way_of_a_launch_lets_nothing_strange_through(
    library: Library, client: Client, device: Device
) -> None:
    """After a launch with full checks, any other kind of argument is checked, too."""
    four = np.ones(4, np.float32)
    loaded = client.compile(add(), CompileOptions())
    x = client.buffer_from_host(four, device)
    for _ in range(2):
        ((result,),) = loaded.execute([x, (x,)])
        assert result.to_host().tolist() == [2, 2, 2, 2]
    ((result,),) = loaded.execute([result, x])
    assert result.to_host().tolist() == [3, 3, 3, 3]
    stranger = create_client(library, {"cpu_device_count": 1}, name="stranger")
    foreign = stranger.buffer_from_host(four, stranger.devices()[0])
    for wrong in ([x], [x, x, x], [x, foreign], [x, (x, x)], [x, [four]]):
        with pytest.raises(InvalidArgument):
            loaded.execute(wrong)  # type: ignore[arg-type]
    gone = client.buffer_from_host(four, device)
    gone.delete()
    with pytest.raises(DeletedBuffer, match="argument 1 of 'add'"):
        loaded.execute([x, gone])
    assert loaded.execute([x, x])[0][0].to_host().tolist() == [2, 2, 2, 2]


def test_views_do_not_keep_the_client_object(library: Library) -> None:
    """No object is destroyed twice, in any order of the ends of buffer, views and client."""
    own = create_client(library, {"cpu_device_count": 1}, name="own")
    freed = weakref.ref(own)
    buffer, other = (own.buffer_from_host(LARGE, own.devices()[0]) for _ in range(2))
    views = [b.to_host() for b in (buffer, buffer, other, other)]
    del buffer, other
    own.close()
    del own
    gc.collect()
    assert freed() is None
    for view in views:
        np.testing.assert_array_equal(view, LARGE)


def test_references_are_taken_and_released_one_at_a_time(client: Client, device: Device) -> None:
    """XLA changes a buffer's references without a lock: earlier, two reads at once crashed."""
    buffer = client.buffer_from_host(LARGE, device)
    buffer.block_until_ready()
    with ThreadPoolExecutor(1) as pool:
        with client.handle().lock:
            read = pool.submit(buffer.to_host)
            with pytest.raises(TimeoutError):
                read.result(0.1)
        view = read.result(60)
    np.testing.assert_array_equal(view, LARGE)


@pytest.mark.parametrize("raw", [False, True])
def test_dropping_a_view_does_not_block_a_reader(client: Client, device: Device, raw: bool) -> None:
    """XLA's reference to a result waits for its memory, which waits for the arguments."""
    loaded = client.compile(add(KIND), CompileOptions())
    put = client.buffer_from_host(LARGE, device)
    ((seen,),) = loaded.execute([(put,), (put,)])
    for _ in range(2):  # the first of a type by Python, the next in the core
        views = [seen.to_host()]
    transfer = AsyncTransfer(
        client, [TensorType(LARGE.shape, LARGE.dtype)], device.default_memory()
    )
    ((result,),) = loaded.execute([(transfer.retrieve(0),), (put,)])
    waits = threading.Event()

    def read() -> Any:
        waits.set()
        if raw:
            return np.frombuffer(result.copy_raw_to_host(0, LARGE.nbytes), LARGE.dtype)
        return result.to_host()

    with ThreadPoolExecutor(2) as pool:
        reading = pool.submit(read)
        waits.wait(60)
        done, _ = wait([reading], 0.05)
        assert not done
        dropping = pool.submit(views.clear)
        done, _ = wait([dropping], 60)
        transfer.send(0, LARGE)
        np.testing.assert_array_equal(reading.result().ravel(), 2 * LARGE.ravel())
    assert done, "the reader had the lock"
