"""Host arrays to buffers and back."""

from __future__ import annotations

import gc
import time
import weakref
from operator import methodcaller
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from plugrt.capi.buffers import dlpack, dlpack_import
from plugrt.capi.buffers.buffer import AliasedBuffer, Buffer
from plugrt.capi.buffers.buffer_spec import BufferSpec
from plugrt.errors import InvalidArgument, InvalidReply, NotAnArray, Unimplemented, UnsupportedDtype
from plugrt.interface import Client, CompileOptions, Device, HostBufferSemantics, Program
from support.broken_steps import transferred
from support.native_core import IN_C

CUBE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
VIEWS = {
    "C order": CUBE,
    "transposed": CUBE.T,
    "F order": np.asfortranarray(CUBE),
    "permuted": CUBE.transpose(1, 0, 2),
    "reversed": CUBE[::-1, :, ::-1],
    "strided": CUBE[:, ::2, 1:3],
    "broadcast": np.broadcast_to(CUBE[:1], (2, 3, 4)),
    "one column": CUBE[..., 1],
    "0-d": np.array(3.5),
    "empty": np.zeros((0, 3)),
    "empty at the end": np.zeros((3, 0)),
    "unaligned": np.frombuffer(b"\0" + CUBE.tobytes(), np.float32, offset=1),
}


def aligned(count: int) -> np.ndarray[Any, Any]:
    """Returns an array whose memory the library can alias."""
    room = np.zeros(count + 16, np.float32)
    start = -room.ctypes.data % 64 // 4
    return room[start : start + count]


@pytest.mark.parametrize("look", [False, True], ids=["transferred", "looked at"])
@pytest.mark.parametrize("semantics", list(HostBufferSemantics), ids=lambda s: s.name)
@pytest.mark.parametrize("view", VIEWS)
def test_every_view_and_semantics(
    client: Client, device: Device, view: str, semantics: HostBufferSemantics, look: bool
) -> None:
    array = VIEWS[view]
    if semantics == HostBufferSemantics.MUTABLE_ZERO_COPY and not array.flags.writeable:
        with pytest.raises(InvalidArgument, match="read-only"):
            client.buffer_from_host(array, device, None, semantics)
        return
    buffer = client.buffer_from_host(array, device, None, semantics)
    out = buffer.to_host() if look else transferred(buffer)
    np.testing.assert_array_equal(out, array)
    assert not out.flags.writeable


@pytest.mark.parametrize("dtype", ["O", "U3", "M8[s]", ">f4", [("a", "i4")]])
def test_dtype_without_an_element_type(client: Client, device: Device, dtype: Any) -> None:
    with pytest.raises(UnsupportedDtype):
        client.buffer_from_host(np.zeros(2, dtype), device)


def test_dtype_newer_than_the_library(client: Client, device: Device) -> None:
    # The library ends the process for this element type.
    if not hasattr(ml_dtypes, "float6_e2m3fn"):
        pytest.skip("this ml_dtypes has no float6")
    with pytest.raises(UnsupportedDtype, match="came with version"):
        client.buffer_from_host(np.zeros(2, ml_dtypes.float6_e2m3fn), device)


def test_values_that_are_no_arrays_are_refused(client: Client, device: Device) -> None:
    for thing in ([1, 2], 3, None, b"bytes"):
        with pytest.raises(NotAnArray, match="a NumPy array was expected"):
            client.buffer_from_host(thing, device)  # type: ignore[arg-type]


@pytest.mark.parametrize("semantics", [2, 3])
def test_zero_copy_keeps_the_array_just_as_long(
    client: Client, device: Device, semantics: int
) -> None:
    array = aligned(1024)
    base = weakref.ref(array.base)
    buffer = client.buffer_from_host(array, device, None, HostBufferSemantics(semantics))
    assert isinstance(buffer, AliasedBuffer)
    assert buffer.unsafe_pointer() == array.ctypes.data
    del array
    gc.collect()
    assert base() is not None
    assert buffer.to_host().sum() == 0
    del buffer
    # A thread of the library reports the release, which may be late on a busy machine.
    for _ in range(10_000):
        if base() is None:
            break
        client.handle().sweep()
        time.sleep(0.001)
    assert base() is None


def test_the_library_has_an_array_in_the_memory_that_is_asked_for(
    client: Client, device: Device
) -> None:
    for memory in device.memories():
        buffer: Any = client.buffer_from_host(CUBE, device, memory)
        assert client.library.call("Buffer_Memory", buffer=buffer._pointer).memory == memory.pointer


def test_a_buffer_that_is_smaller_than_its_type_is_not_read(
    client: Client, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    def state_too_little(args: Any) -> int:
        args.on_device_size_in_bytes = CUBE.nbytes - 1
        return 0  # no error

    buffer = client.buffer_from_host(CUBE, device)
    monkeypatch.setitem(client.library.slots, "Buffer_OnDeviceSizeInBytes", state_too_little)
    with pytest.raises(InvalidReply, match="the buffer has 95 bytes where its type needs 96"):
        transferred(buffer)


def test_many_shapes_do_not_pile_up(own_client: Client) -> None:
    device = own_client.devices()[0]
    for size in range(5000):
        own_client.buffer_from_host(np.zeros(size, np.uint8), device)
    puts = own_client._transfers._puts  # type: ignore[union-attr]
    assert len(puts) <= 4096


class _Capsule:
    """An object for `np.from_dlpack`."""

    def __init__(self, buffer: Any) -> None:
        self._buffer = buffer

    def __dlpack__(self, **_: Any) -> Any:
        return self._buffer.to_dlpack()

    def __dlpack_device__(self) -> tuple[int, int]:
        device: tuple[int, int] = self._buffer.dlpack_device()
        return device


class TestDlpack:
    """Sharing memory through DLPack."""

    def test_capsule_that_nobody_takes(self, client: Client, device: Device) -> None:
        before = len(dlpack._exported)
        capsule = client.buffer_from_host(CUBE, device).to_dlpack()
        assert len(dlpack._exported) == before + 1
        del capsule
        assert len(dlpack._exported) == before

    @pytest.mark.skipif(not IN_C, reason="a capsule's end in Python loses the error")
    def test_capsule_that_its_consumer_refuses(self, client: Client, device: Device) -> None:
        before = len(dlpack._exported)
        buffer = client.buffer_from_host(np.ones(3, ml_dtypes.bfloat16), device)
        with pytest.raises((BufferError, RuntimeError), match="dtype"):
            np.from_dlpack(_Capsule(buffer))
        assert len(dlpack._exported) == before

    def test_type_without_a_dlpack_code(self, client: Client, device: Device) -> None:
        buffer = client.buffer_from_host(np.zeros(2, ml_dtypes.float8_e5m2), device)
        with pytest.raises(UnsupportedDtype, match="DLPack"):
            buffer.to_dlpack()
        with pytest.raises(UnsupportedDtype, match="DLPack"):  # DLPack cannot state 256 bits
            dlpack.get_type_code(np.dtype(np.clongdouble))

    @pytest.mark.parametrize(
        ("code", "bits"), [(2, 8), (6, 32), (0, 24), (0, 0), (5, 32), (5, 255), (4, 32), (3, 64)]
    )
    def test_type_that_numpy_lacks(
        self, client: Client, device: Device, code: int, bits: int
    ) -> None:
        capsule = aligned(64).__dlpack__()
        tensor = dlpack.read(capsule).managed.dl_tensor
        tensor.code, tensor.bits = code, bits
        with pytest.raises(UnsupportedDtype, match=f"type of code {code}, {bits} bits, 1 lanes"):
            client.buffer_from_dlpack(capsule, device)


@pytest.mark.parametrize("look", [False, True], ids=["transferred", "looked at"])
@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 0, 1), (0, 2, 1)])
def test_layout_that_is_not_c_order(
    client: Client, device: Device, order: tuple[int, ...], look: bool
) -> None:
    read = methodcaller("to_host") if look else transferred
    stored = aligned(24).reshape(2, 3, 4)
    stored[:] = CUBE
    array = stored.transpose(np.argsort(order))
    spec = BufferSpec(client.handle(), array.shape, array.dtype, device)
    strides = tuple(s // 4 for s in array.strides)
    buffer = dlpack_import.view(client.handle(), stored.ctypes.data, spec, strides, lambda: None)
    assert buffer.minor_to_major() == tuple(int(i) for i in np.argsort(strides))
    np.testing.assert_array_equal(read(buffer), array)
    np.testing.assert_array_equal(read(buffer.copy_to_device(client.devices()[1])), array)
    copy = buffer.copy_to_memory(device.memory("pinned_host"))
    np.testing.assert_array_equal(read(copy), array)


def test_a_token_is_not_read_nor_copied(client: Client, device: Device) -> None:
    """XLA's client ends the process for the layout, or a copy, of a token."""
    text = (
        b"func.func public @main() -> !stablehlo.token { %t = stablehlo.create_token : "
        b"!stablehlo.token return %t : !stablehlo.token }"
    )
    [[token]] = client.compile(Program(text), CompileOptions()).execute([])
    token.block_until_ready()
    with pytest.raises(InvalidArgument, match="a token, on cpu:0, orders effects"):
        token.to_host()
    for copy in (
        lambda: token.copy_to_device(client.devices()[1]),
        lambda: token.copy_to_memory(device.default_memory()),
    ):
        with pytest.raises(Unimplemented, match="a copy of a token"):
            copy()
    with pytest.raises(UnsupportedDtype):
        token.to_dlpack()


def test_a_buffer_that_a_signal_handler_left_half_made(unraisable: Any) -> None:
    """Like one whose ``__init__`` was interrupted before its first line."""
    half_made = Buffer.__new__(Buffer)
    gone = weakref.ref(half_made)
    del half_made
    assert gone() is None
    assert not unraisable
