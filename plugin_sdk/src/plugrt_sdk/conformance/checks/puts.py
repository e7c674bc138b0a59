"""Level 1: puts and reads of arrays: dtypes, shapes, strides, semantics."""

from __future__ import annotations

import time
from functools import partial

import numpy as np

from plugrt.capi.abi.declarations import API_MINOR
from plugrt.capi.abi.element_types import supported_dtypes
from plugrt.errors import PlugrtError, ResourceExhausted, describe
from plugrt.interface import HostBufferSemantics, TensorType
from plugrt_sdk.conformance.check import Chapter, Demand, Level
from plugrt_sdk.conformance.expect import Array, expect, expect_equal, expect_same_bits
from plugrt_sdk.conformance.inputs import LENGTHS, fill, patterns
from plugrt_sdk.conformance.resident import available_bytes
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.conformance.verdict import NotTried, Verdict

CHAPTER = Chapter("buffers.put_get", Level.BUFFERS, "PJRT_Client_BufferFromHostBuffer")

_LARGE = (257, 4099)
"""4 MB of float32; no tile size divides a dimension."""
_SAMPLE = 64 << 20
"""The number of bytes whose time gives the estimate for 2 GiB."""


def put_and_get(subject: PluginSubject, array: Array) -> None:
    """Puts an array on each addressable device, and expects the same bits from a read."""
    for place, device in enumerate(subject.client.devices()):
        if device.is_addressable:
            expect_same_bits(
                subject.put(array, place).to_host(), array, f"on {device!r}, the array"
            )


def put_on_one(subject: PluginSubject, array: Array, number: int, what: str) -> None:
    """Puts an array on one of the addressable devices, in turn, and expects the same bits."""
    devices = subject.client.addressable_devices()
    device = devices[number % len(devices)]
    subject.require_room(array.nbytes, device)
    buffer = subject.client.buffer_from_host(array, device)
    expect_same_bits(buffer.to_host(), array, what)


def _dtype(subject: PluginSubject, dtype: str) -> None:
    try:
        put_and_get(subject, patterns(dtype))
    except PlugrtError as error:
        stated = subject.declared.dtypes if subject.states("dtypes") else frozenset[str]()
        if dtype in stated | {"float32"}:
            found = f"it was refused: {describe(error)}"
            expect(False, f"{dtype}, which is declared or demanded of all", found)
        raise


for _name in sorted(supported_dtypes(API_MINOR) - {"void"}):
    CHAPTER.add(
        f"dtypes.{_name}",
        f"Arrays of {_name} come back with the same bits, whatever these are.",
        partial(_dtype, dtype=_name), refusable=True, why=f"arrays of {_name} change silently",
        covers=("Client.buffer_from_host", "Buffer.to_host"),
    )  # fmt: skip


def _lengths(subject: PluginSubject, dtype: str) -> None:
    random = subject.random(f"lengths.{dtype}")
    whole = fill(dtype, (LENGTHS[-1],), random)
    for i, length in enumerate(LENGTHS):
        begin = int(random.integers(0, len(whole) - length + 1))
        put_on_one(subject, whole[begin : begin + length], i, f"the array of {length} elements")


for _name in sorted(supported_dtypes(API_MINOR) - {"void"}):
    CHAPTER.add(
        f"lengths.{_name}",
        f"Arrays of {_name} of 0 to 257 elements, and of 2^k - 1, 2^k and 2^k + 1 up to 2^21, come "
        "back as they were put.",
        partial(_lengths, dtype=_name), refusable=True,
        why="the last elements are lost where a length fills no vector, packet or page",
    )  # fmt: skip


_SOURCE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
_UNALIGNED = np.frombuffer(b"x" + _SOURCE.tobytes(), np.float32, 24, 1)
_SHAPES: dict[str, tuple[str, Array]] = {
    "scalar": ("An array without dimensions", np.array(3.5, np.float32)),
    "one": ("An array of one element", np.full((1, 1), 3.5, np.float32)),
    "empty": ("An array without elements", np.zeros((2, 0, 3), np.float32)),
    "rank8": ("An array of eight dimensions", _SOURCE.reshape(1, 2, 1, 3, 1, 4, 1, 1)),
    "transposed": ("A transposed view", _SOURCE.T),
    "strided": ("A view of every second element", _SOURCE[:, ::2, 1::2]),
    "negative_strides": ("A reversed view", _SOURCE[::-1, :, ::-1]),
    "broadcast": ("A view with strides of 0", np.broadcast_to(_SOURCE[0, 0], (3, 4))),
    "fortran": ("An array in Fortran order", np.asfortranarray(_SOURCE)),
    "unaligned": ("An array at an odd address", _UNALIGNED),
    "read_only": ("A read-only array", np.frombuffer(_SOURCE.tobytes(), np.float32)),
}  # fmt: skip


def _shape(subject: PluginSubject, array: Array) -> None:
    put_and_get(subject, array)


for _name, (_words, _array) in _SHAPES.items():
    CHAPTER.add(
        _name, f"{_words} comes back as it was put.", partial(_shape, array=_array),
        why="views and slices of host arrays arrive scrambled, or crash the process",
    )  # fmt: skip


@CHAPTER.check("large", why="transfers in parts lose or repeat some")
def large(subject: PluginSubject) -> None:
    """An array of 4 MB with odd dimensions is read as it was put."""
    put_and_get(subject, fill("int32", _LARGE, subject.random("large")))


@CHAPTER.check("larger", why="the end of a large array is lost where a staging buffer is full")
def larger(subject: PluginSubject) -> None:
    """An array of 65 MB is read as it was put."""
    array = np.arange(65 << 18, dtype=np.int32)
    expect_same_bits(subject.put(array).to_host(), array)


@CHAPTER.check(
    "huge", refusable=True, slow=True, why="sizes of more than 31 bits are cut off"
)  # fmt: skip
def huge(subject: PluginSubject) -> None:
    """An array of more than 2 GiB is read as it was put, if there is memory and time."""
    if available_bytes() < 8 << 30:
        why = "the host has less than 8 GiB of memory available"
        raise NotTried(Verdict.NOT_RUN, why, applies=False)
    subject.require_room(2 << 30, subject.client.addressable_devices()[0])
    begin = time.perf_counter()
    put_on_one(subject, np.zeros(_SAMPLE, np.uint8), 0, "the array of 64 MiB")
    estimate = (2 << 30) / _SAMPLE * (time.perf_counter() - begin)
    if estimate > subject.seconds / 2:
        why = (
            f"2 GiB need about {estimate:.0f} s, estimated from 64 MiB: more than half of the "
            f"check's {subject.seconds:g} s; --time-limit gives it more"
        )
        raise NotTried(Verdict.NOT_RUN, why, applies=False)
    array = np.zeros((2 << 30) + 4099, np.uint8)
    for begin in (0, 1 << 20, (1 << 31) - 2050, len(array) - 4096):
        array[begin : begin + 4096] = fill("uint8", (4096,), subject.random(f"huge.{begin}"))
    try:
        found = subject.put(array).to_host()
    except ResourceExhausted as error:
        raise NotTried(Verdict.NOT_RUN, describe(error), applies=False) from error
    expect_equal((found.shape, found.dtype), (array.shape, array.dtype), "shape and dtype")
    for begin in range(0, len(array), 1 << 26):  # a comparison of the whole would need 2 GiB more
        part = slice(begin, begin + (1 << 26))
        expect_same_bits(found[part], array[part], f"the part from element {begin} on")


@CHAPTER.check("special_values", why="NaN payloads, negative zeros and subnormal numbers are data")
def special_values(subject: PluginSubject) -> None:
    """NaNs with payloads, infinities, negative zero and subnormal numbers keep their bits."""
    bits = [0x7FC00001, 0xFFC12345, 0x7F800000, 0xFF800000, 0x80000000, 1, 0x007FFFFF, 0x7F7FFFFF]
    put_and_get(subject, np.array(bits, np.uint32).view(np.float32))


@CHAPTER.check("byte_order", refusable=True, why="files of another machine arrive as other numbers")
def byte_order(subject: PluginSubject) -> None:
    """An array of the other byte order is read with the same values, in the machine's order."""
    source = np.array([1, 258, 65536], ">i4" if np.little_endian else "<i4")
    found = subject.put(source).to_host()
    expect_same_bits(found, source.astype(np.int32))


_SEMANTICS = "PJRT_HostBufferSemantics"


def _semantics(subject: PluginSubject, semantics: HostBufferSemantics) -> None:
    device = subject.client.addressable_devices()[0]
    source = np.arange(1000, dtype=np.float32)
    wanted = source.copy()
    buffer = subject.client.buffer_from_host(source, device, None, semantics)
    if semantics is HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL:
        source[:] = -1
    buffer.block_until_ready()
    if semantics is HostBufferSemantics.IMMUTABLE_UNTIL_TRANSFER_COMPLETES:
        source[:] = -1
    expect_same_bits(buffer.to_host(), wanted, "the array, when the source has changed")
    buffer.delete()


for _member in HostBufferSemantics:
    _changes = "" if _member >= 2 else ", whatever becomes of the source when it may change"
    CHAPTER.add(
        f"semantics.{_member.name.lower()}",
        f"An array put under {_member.name} keeps its contents{_changes}.",
        partial(_semantics, semantics=_member), rests_on=_SEMANTICS,
        why="arrays change when the host reuses its memory", covers=("Buffer.block_until_ready",),
    )  # fmt: skip


@CHAPTER.check("source_lives", rests_on=_SEMANTICS, why="arrays hold what the allocator puts there")
def source_lives(subject: PluginSubject) -> None:
    """An array put without a copy outlives the caller's reference to its source."""
    device = subject.client.addressable_devices()[0]
    zero_copy = HostBufferSemantics.IMMUTABLE_ZERO_COPY
    kept = [
        subject.client.buffer_from_host(np.full(4096, i, np.float32), device, None, zero_copy)
        for i in range(16)
    ]
    for i, buffer in enumerate(kept):
        expect_same_bits(buffer.to_host(), np.full(4096, i, np.float32), f"array {i}")


@CHAPTER.check(
    "several",
    why="batches of arguments are mixed up",
    rests_on="plugrt.interface.Client",
    demand=Demand.PLUGRT,
    covers=("Client.shards_from_host", "Client.shards", "Client.held_form"),
)
def several(subject: PluginSubject) -> None:
    """Several arrays in one put arrive in order, unchanged."""
    arrays = [np.full((i + 1, 2), i, np.float32) for i in range(5)]
    device = subject.client.addressable_devices()[0]
    found = subject.client.shards_from_host(arrays, device)
    expect_equal(len(found), len(arrays), "arrays:")
    for held, array in zip(found, arrays, strict=True):
        [buffer] = subject.open(held, TensorType(array.shape, array.dtype))
        expect_same_bits(buffer.to_host(), array)


@CHAPTER.check(
    "parts",
    why="sharded arrays are put together wrong",
    rests_on="plugrt.interface.Client",
    demand=Demand.PLUGRT,
    covers=("Client.buffers_from_host",),
)
def parts(subject: PluginSubject) -> None:
    """The parts of an array arrive on their devices."""
    devices = list(subject.client.addressable_devices())
    arrays = [np.full(3, i, np.float32) for i in range(len(devices))]
    found = subject.client.buffers_from_host(arrays, devices)
    for buffer, array, device in zip(found, arrays, devices, strict=True):
        expect(buffer.device is device, f"a part on {device!r}", buffer.device)
        expect_same_bits(buffer.to_host(), array, f"the part on {device!r}")
