"""Level 1: arrays on a device: their attributes, reading, deleting, copying."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from plugrt.errors import DeletedBuffer, FailedPrecondition, Unimplemented
from plugrt.interface import TensorType
from plugrt_sdk.conformance.check import Chapter, Demand, Level, Needs
from plugrt_sdk.conformance.expect import (
    Array,
    expect,
    expect_equal,
    expect_refusal,
    expect_same_bits,
)
from plugrt_sdk.conformance.inputs import BORDERS, NARROW, RANKS, Shape, fill
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.conformance.sweeps import within_limits
from plugrt_sdk.testing.subject import ONE

CHAPTER = Chapter("buffers", Level.BUFFERS, "plugrt.interface.Buffer; PJRT_Buffer_*")

_COPIED = tuple(
    (n,) for n in (*range(34), *BORDERS, 1000, 1001, *(2**k + 1 for k in range(10, 17)))
)
"""The copied lengths."""


@CHAPTER.check(
    "type", why="hosts compute result shapes from it", covers=("Buffer.shape", "Buffer.dtype")
)
def buffer_type(subject: PluginSubject) -> None:
    """An array states its shape and dtype."""
    for shape in ((), (3,), (2, 0), (1, 2, 3)):
        buffer = subject.put(np.zeros(shape, np.int32))
        expect_equal((tuple(buffer.shape), buffer.dtype), (shape, np.dtype(np.int32)), "the type")


@CHAPTER.check(
    "place",
    why="launches find their arguments on another device than they are",
    covers=("Buffer.device", "Buffer.memory"),
)
def place(subject: PluginSubject) -> None:
    """An array states its device and its memory."""
    for i, device in enumerate(subject.client.devices()):
        if device.is_addressable:
            buffer = subject.put(ONE, i)
            expect(buffer.device is device, f"the device {device!r}", buffer.device)
            expect(buffer.memory is device.default_memory(), "its default memory", buffer.memory)


@CHAPTER.check(
    "read_only",
    why="writing to a host array changes the one on the device",
    rests_on="plugrt.interface.Buffer.to_host; jax.Array.__array__",
    demand=Demand.PLUGRT,
)
def read_only(subject: PluginSubject) -> None:
    """A read returns a read-only NumPy array."""
    expect_equal(subject.put(ONE).to_host().flags.writeable, False, "flags.writeable:")


@CHAPTER.check(
    "read_twice",
    why="the second look at a result is another one",
    covers=("Buffer.copy_to_host_async",),
)
def read_twice(subject: PluginSubject) -> None:
    """An array is read twice, also after an early copy was requested, with the same result."""
    buffer = subject.put(ONE)
    first = buffer.to_host()
    buffer.copy_to_host_async()
    expect_same_bits(buffer.to_host(), first, "what is read again:")
    expect_same_bits(first, ONE, "what was read first:")


@CHAPTER.check("independent", why="an array changes when another one is put")
def independent(subject: PluginSubject) -> None:
    """Many arrays of one type keep their own contents."""
    buffers = [subject.put(np.full(17, i, np.int32)) for i in range(50)]
    for i, buffer in enumerate(buffers):
        expect_same_bits(buffer.to_host(), np.full(17, i, np.int32), f"array {i} of 50")


@CHAPTER.check(
    "delete",
    why="memory is freed late, twice, or never",
    covers=("Buffer.delete", "Buffer.is_deleted"),
)
def delete(subject: PluginSubject) -> None:
    """delete() deletes an array, and a second call does nothing."""
    x = subject.put(ONE)
    expect_equal(x.is_deleted(), False, "is_deleted() before:")
    x.delete()
    x.delete()
    expect_equal(x.is_deleted(), True, "is_deleted() after:")


@CHAPTER.check("delete.read", why="reading a deleted array gives other data, or crashes")
def delete_read(subject: PluginSubject) -> None:
    """A deleted array cannot be read."""
    x = subject.put(ONE)
    x.delete()
    expect_refusal(x.to_host, DeletedBuffer, what="to_host() after delete()")


@CHAPTER.check("delete.others", why="deleting one array takes another with it")
def delete_others(subject: PluginSubject) -> None:
    """The deletion of an array changes neither other arrays nor earlier reads of it."""
    source = np.arange(1000, dtype=np.float32)
    x, y = subject.put(source), subject.put(source)
    host = x.to_host()
    x.delete()
    for _ in range(8):
        subject.put(np.full(1000, -1, np.float32))
    expect_same_bits(y.to_host(), source, "the other array")
    expect_same_bits(host, source, "what was read before")


@CHAPTER.check(
    "ready",
    rests_on="PJRT_Buffer_ReadyEvent",
    why="programs wait for ever, or read too early",
    covers=("Buffer.ready_event", "Event.is_ready", "Event.wait"),
)
def ready(subject: PluginSubject) -> None:
    """The event of an array becomes ready, and stays ready."""
    event = subject.put(ONE).ready_event()
    event.wait()
    expect_equal(event.is_ready(), True, "is_ready() after wait():")
    event.wait()


@CHAPTER.check(
    "ready.deleted",
    rests_on="pjrt_c_api.h: ReadyEvent after Delete",
    why="waiting for a deleted array hangs",
)
def ready_deleted(subject: PluginSubject) -> None:
    """An event that was requested before an array was deleted stays ready."""
    x = subject.put(ONE)
    event = x.ready_event()
    event.wait()
    x.delete()
    expect_equal(event.is_ready(), True, "is_ready() after delete():")


@CHAPTER.check(
    "size",
    refusable=True,
    rests_on="PJRT_Buffer_OnDeviceSizeInBytes",
    why="memory budgets are wrong",
    covers=("Buffer.on_device_size_in_bytes",),
)
def size(subject: PluginSubject) -> None:
    """An array of any dtype and rank needs at least the bytes of its elements on each device."""
    found = subject.put(np.zeros((5, 7), np.float32)).on_device_size_in_bytes()
    expect(found >= 140, "at least 140 bytes", found)
    for array, place in _each(subject, RANKS):
        least = array.nbytes if not NARROW.match(array.dtype.name) else -(-array.size // 8)
        found = subject.put(array, place).on_device_size_in_bytes()
        what = f"at least {least} bytes for {list(array.shape)} {array.dtype} on device {place}"
        expect(found >= least, what, found)


def _each(subject: PluginSubject, shapes: Sequence[Shape]) -> Iterator[tuple[Array, int]]:
    """Yields arrays of each dtype and shape, and the place of each device, in random order."""
    random = subject.random("buffers")
    places = [i for i, device in enumerate(subject.client.devices()) if device.is_addressable]
    kinds = [(shape, dtype) for shape in shapes for dtype in subject.dtypes]
    for number in within_limits(random.permutation(len(kinds) * len(places)).tolist(), 0.3):
        (shape, dtype), place = kinds[number // len(places)], places[number % len(places)]
        yield fill(dtype, shape, random), place


@CHAPTER.check(
    "copy.own_device",
    capability="device_to_device_copy",
    rests_on="PJRT_Buffer_CopyToDevice",
    why="copies share memory with what is donated",
    covers=("Buffer.copy_to_device",),
)
def copy_to_own_device(subject: PluginSubject) -> None:
    """A copy to the array's own device outlives the array."""
    x = subject.put(ONE)
    copy = x.copy_to_device(subject.client.devices()[0])
    x.delete()
    expect_same_bits(copy.to_host(), ONE, "the copy")


@CHAPTER.check(
    "copy.devices",
    capability="device_to_device_copy",
    needs=Needs.TWO_DEVICES,
    level=Level.SCALES,
    rests_on="PJRT_Buffer_CopyToDevice",
    why="arrays arrive scrambled on the next device",
)
def copy_to_devices(subject: PluginSubject) -> None:
    """An array is copied to each other device, with the same contents."""
    x = subject.put(ONE)
    for device in subject.client.addressable_devices()[1:]:
        copy = x.copy_to_device(device)
        expect(copy.device is device, f"a copy on {device!r}", copy.device)
        expect_same_bits(copy.to_host(), ONE, f"the copy on {device!r}")


@CHAPTER.check(
    "copy.devices.dtypes", capability="device_to_device_copy", needs=Needs.TWO_DEVICES,
    level=Level.SCALES, rests_on="PJRT_Buffer_CopyToDevice",
    why="integers, bytes and large arrays arrive scrambled on the next device",
)  # fmt: skip
def copy_dtypes_to_devices(subject: PluginSubject) -> None:
    """Arrays of each dtype, rank and of many lengths are copied to each device, and stay alive."""
    devices = subject.client.addressable_devices()
    for number, (array, place) in enumerate(_each(subject, (*_COPIED, *RANKS))):
        source = subject.put(array, place)
        device = devices[number % len(devices)]
        copy = source.copy_to_device(device)
        what = f"the copy of {list(array.shape)} {array.dtype} on {device!r}"
        expect(copy.device is device, f"a copy on {device!r}", copy.device)
        expect_same_bits(copy.to_host(), array, what)
        expect_same_bits(source.to_host(), array, f"the source of {what}")


@CHAPTER.check(
    "copy.processes",
    capability="copies_between_processes",
    rests_on="plugrt.interface.Client.copy_between_processes",
    demand=Demand.PLUGRT,
    why="what one process sends arrives in another as something else",
    covers=("Client.copy_between_processes",),
)
def copy_between_processes(subject: PluginSubject) -> None:
    """A copy between processes (from a device to itself) arrives; no copies give no results."""
    client, x, of_one = subject.client, subject.put(ONE), TensorType(ONE.shape, ONE.dtype)
    try:
        made = client.copy_between_processes(of_one, [(x.device, x.device)], [x])
    except FailedPrecondition as error:
        if subject.declared.copies_between_processes:
            raise
        raise Unimplemented(str(error)) from error  # the error names the missing service
    expect_equal(len(made), 1, "the number of copies that end in this process:")
    expect(made[0].device is x.device, f"a copy on {x.device!r}", made[0].device)
    expect_same_bits(made[0].to_host(), ONE, "the copy")
    expect_equal(len(client.copy_between_processes(of_one, [], [])), 0, "copies of nothing:")
