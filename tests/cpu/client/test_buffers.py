"""Memory shared with the host by puts and reads, and for how long; the kit tests the rest."""

from __future__ import annotations

import gc
import sys
import time
import weakref
from typing import Any

import numpy as np
import pytest

from plugrt.errors import NotAnArray, Unimplemented
from plugrt.interface import Client, HostBufferSemantics
from support.cpu_programs import DTYPE_NAMES


def aligned(count: int, offset: int = 0, dtype: str = "float32") -> np.ndarray[Any, Any]:
    """Returns a vector that begins at a multiple of 64 bytes, plus an offset."""
    size = count * np.dtype(dtype).itemsize
    memory = np.zeros(size + 128, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    return memory[start : start + size].view(dtype)


@pytest.mark.parametrize("how", ["deleted", "dropped"])
def test_memory_that_an_array_lies_in_is_given_back_when_it_ends(client: Client, how: str) -> None:
    """jaxlib keeps it until its next call, which a host of an exported plugin may never make."""
    source = aligned(3)
    owner = type("Owner", (), {"__array_interface__": source.__array_interface__})()
    array, ends = np.asarray(owner), weakref.ref(owner)
    zero_copy = HostBufferSemantics.IMMUTABLE_ZERO_COPY
    buffer = client.buffer_from_host(array, client.devices()[0], None, zero_copy)
    buffer.ready_event().wait()
    del array, owner
    assert ends() is not None, "it was not borrowed"
    if how == "deleted":
        buffer.delete()
        assert ends() is None
    del buffer
    assert ends() is None


def test_declares_exactly_these_dtypes(client: Client) -> None:
    assert client.capabilities.dtypes == frozenset(DTYPE_NAMES)


@pytest.mark.parametrize("count", [1, 1000, 1 << 18])
def test_zero_copy_aliases_aligned_memory(client: Client, count: int) -> None:
    for offset, aliases in ((0, True), (16, False)):
        source = aligned(count, offset)
        buffer = client.buffer_from_host(
            source, client.devices()[0], None, HostBufferSemantics.IMMUTABLE_ZERO_COPY
        )
        assert (buffer.unsafe_pointer() == source.ctypes.data) == aliases


def test_source_is_kept_as_long_as_needed_and_no_longer(client: Client) -> None:
    device = client.devices()[0]

    class Source(np.ndarray):  # type: ignore[type-arg]
        """Supports weak references."""

    copied = aligned(1000).view(Source)
    gone = weakref.ref(copied)
    kept = client.buffer_from_host(copied, device)
    del copied
    gc.collect()
    assert gone() is None

    shared = aligned(1000)
    before = sys.getrefcount(shared)
    buffer = client.buffer_from_host(shared, device, None, HostBufferSemantics.IMMUTABLE_ZERO_COPY)
    assert sys.getrefcount(shared) > before
    host = buffer.to_host()
    del buffer
    assert sys.getrefcount(shared) > before
    del host
    gc.collect()
    kept.to_host()
    until = time.monotonic() + 60  # a thread of jaxlib's may be about to release it
    while True:
        client.buffer_from_host(np.ones(1), device)  # it releases references at some later call
        if sys.getrefcount(shared) == before or time.monotonic() > until:
            break
        time.sleep(0.01)
    assert sys.getrefcount(shared) == before


def test_masked_array_is_refused(client: Client) -> None:
    with pytest.raises(NotAnArray, match="mask"):
        client.buffer_from_host(np.ma.array([1, 2], mask=[0, 1]), client.devices()[0])


def test_unimplemented_names_the_backend(client: Client) -> None:
    """The error names the operation, and the class of the backend.

    Differs from JAX: `Device.memory_stats()` of a backend without them, as `cpu` | None |
    `Unimplemented`; `client.capabilities.memory_stats` says it.
    """
    with pytest.raises(Unimplemented, match=r"memory_stats.*plugrt_cpu"):
        client.devices()[0].memory_stats()
