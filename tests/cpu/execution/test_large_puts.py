"""Large host arrays: NumPy copies them, and the backend owns the copy."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pytest

import plugrt
from plugrt import Array, device_put
from plugrt.base.aligned_arrays import ALIGNMENT, LARGE_BYTES

SHAPE = (4, LARGE_BYTES // 16)
donating = plugrt.jit(lambda a: a + 1, donate_argnums=0)


@pytest.fixture
def host() -> npt.NDArray[np.float32]:
    return np.ones(SHAPE, np.float32)


@pytest.fixture
def held() -> Iterator[Callable[[], int]]:
    """Returns a function that counts the bytes that NumPy and Python allocated since its start."""
    device_put(np.ones(1))  # jaxlib frees memory that was dropped before
    gc.collect()
    tracemalloc.start(1)
    before = tracemalloc.get_traced_memory()[0]
    yield lambda: tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()


def test_the_source_is_neither_looked_at_nor_written_after_the_put(
    host: npt.NDArray[np.float32],
) -> None:
    x = device_put(host)
    host[:] = 2
    seen = np.asarray(x)
    assert not seen.flags.writeable
    y = donating(x)
    assert x.is_deleted()
    z = donating(device_put(host.T))
    assert (host == 2).all()
    assert (seen == 1).all()
    assert (np.asarray(y) == 2).all()
    assert z.shape == SHAPE[::-1]
    assert (np.asarray(z) == 3).all()


def test_the_copy_is_numpys_and_aligned(
    host: npt.NDArray[np.float32], held: Callable[[], int]
) -> None:
    can = plugrt.get_backend().capabilities
    if not (can.zero_copy_put and can.unsafe_pointer):
        pytest.skip("the library takes no memory of the host without a copy")
    x = device_put(host, plugrt.devices()[-1])
    assert held() >= host.nbytes
    assert x.unsafe_buffer_pointer() % ALIGNMENT == 0
    assert x.unsafe_buffer_pointer() == np.asarray(x).ctypes.data


def donate(x: Array) -> None:
    y = donating(x)
    donating(y).block_until_ready()


def look(x: Array) -> None:
    seen = np.asarray(x)
    x.delete()
    assert (seen == 1).all()


@pytest.mark.parametrize("end", [Array.delete, Array.block_until_ready, donate, look])
def test_the_copy_is_given_back(
    host: npt.NDArray[np.float32], held: Callable[[], int], end: Callable[[Array], object]
) -> None:
    """A deletion frees it at once; jaxlib keeps a dropped array's copy until its next put."""
    x = device_put(host)
    end(x)
    if end is not Array.delete:
        del x
        until = time.monotonic() + 60  # a thread of the library's may be about to free it
        while True:
            device_put(np.ones(1))
            if held() < host.nbytes or time.monotonic() > until:
                break
            time.sleep(0.01)
    assert held() < host.nbytes
