"""Exchange of buffers through DLPack."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from plugrt.errors import InvalidArgument, Unimplemented
from plugrt.interface import Client
from plugrt_cpu import dlpack
from plugrt_cpu.types import BUFFER_PROTOCOL_DTYPES, collect_dtypes

DTYPES, SUB_BYTE_DTYPES = collect_dtypes()

WHOLE = sorted((d for d in DTYPES - SUB_BYTE_DTYPES), key=str)


def aligned(count: int, dtype: str = "float32") -> np.ndarray[Any, Any]:
    """Returns a vector at a multiple of 64 bytes."""
    size = count * np.dtype(dtype).itemsize
    memory = np.zeros(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size].view(dtype)


@pytest.mark.parametrize("dtype", WHOLE, ids=str)
@pytest.mark.parametrize("shape", [(), (2, 3), (0, 3)])
def test_through_a_capsule_and_back(
    client: Client, dtype: np.dtype[Any], shape: tuple[int, ...]
) -> None:
    source = np.ones(shape).astype(dtype)
    buffer = client.buffer_from_host(source, client.devices()[0])
    back = client.buffer_from_dlpack(buffer.to_dlpack(), client.devices()[0])
    assert (back.shape, back.dtype) == (shape, dtype)
    if source.size:
        assert back.unsafe_pointer() == buffer.unsafe_pointer()
    del buffer
    gc.collect()
    assert back.to_host().tobytes() == source.tobytes()


@pytest.mark.parametrize("dtype", sorted(BUFFER_PROTOCOL_DTYPES, key=str), ids=str)
def test_numpy_imports_a_buffer_without_a_copy(client: Client, dtype: np.dtype[Any]) -> None:
    source = np.arange(6).reshape(2, 3).astype(dtype)
    buffer = client.buffer_from_host(source, client.devices()[0])
    assert buffer.dlpack_device() == (1, 0)
    host = np.from_dlpack(dlpack.CapsuleHolder(buffer.to_dlpack()))
    assert host.dtype == dtype
    assert host.__array_interface__["data"][0] == buffer.unsafe_pointer()
    np.testing.assert_array_equal(host, source)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_delete_while_a_capsule_lives(client: Client, dtype: str) -> None:
    """jaxlib aborts the process here if the capsule is its own."""
    source = np.arange(6).astype(np.dtype(next(d for d in WHOLE if d.name == dtype)))
    for use in (False, True):
        buffer = client.buffer_from_host(source, client.devices()[0])
        capsule = buffer.to_dlpack()
        taken = client.buffer_from_dlpack(capsule, client.devices()[1]) if use else None
        buffer.delete()
        assert buffer.is_deleted()
        del buffer
        gc.collect()
        client.buffer_from_host(np.zeros(6, source.dtype), client.devices()[0])
        if taken is not None:
            assert taken.to_host().tobytes() == source.tobytes()
        del taken, capsule


def test_numpys_capsules(client: Client) -> None:
    source = aligned(16)
    source[:] = range(16)
    buffer = client.buffer_from_dlpack(source.__dlpack__(), client.devices()[1])
    assert buffer.device is client.devices()[1]
    assert buffer.unsafe_pointer() == source.ctypes.data
    assert buffer.to_host().tolist() == list(range(16))
    strided = client.buffer_from_dlpack(source[1::2].__dlpack__(), client.devices()[0])
    assert strided.to_host().tolist() == list(range(1, 16, 2))


def test_torch(client: Client) -> None:
    torch = pytest.importorskip("torch")
    buffer = client.buffer_from_host(np.arange(4.0), client.devices()[0])
    assert torch.from_dlpack(buffer.to_dlpack()).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("thing", [None, 5, "dltensor", np.zeros(2)], ids=str)
def test_not_a_capsule(client: Client, thing: Any) -> None:
    with pytest.raises(InvalidArgument, match="DLPack"):
        client.buffer_from_dlpack(thing, client.devices()[0])


@pytest.mark.parametrize("dtype", sorted(SUB_BYTE_DTYPES, key=str), ids=str)
def test_sub_byte_dtypes_are_refused(client: Client, dtype: np.dtype[Any]) -> None:
    with pytest.raises(Unimplemented, match=dtype.name):
        client.buffer_from_host(np.zeros(2, dtype), client.devices()[0]).to_dlpack()
