"""CrossHostTransfers: buffers from a device of one process to a device of another.

Both sides name a transfer by the same key, and neither waits for the other: the sender gets an
event for each buffer, the receiver buffers that become ready when their data arrive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from plugrt.capi.abi._abi import ffi
from plugrt.capi.buffers.buffer import Buffer
from plugrt.capi.buffers.buffer_spec import BufferSpec
from plugrt.capi.devices.devices import Device
from plugrt.capi.library.events import Event
from plugrt.errors import InvalidArgument
from plugrt.interface import TensorType

if TYPE_CHECKING:
    from plugrt.capi.client.client import Client


def _require_same_length(**lists: Sequence[object]) -> int:
    lengths = {name: len(items) for name, items in lists.items()}
    if len(set(lengths.values())) != 1:
        raise InvalidArgument(f"the lists of a cross-host transfer have one length; got {lengths}")
    return next(iter(lengths.values()))


def send(
    client: Client, buffers: Sequence[Buffer], devices: Sequence[int], keys: Sequence[int]
) -> list[Event]:
    """Sends each buffer to the device with that global id; returns an event for each."""
    count = _require_same_length(buffers=buffers, devices=devices, keys=keys)
    handle = client.handle()
    events = ffi.new("PJRT_Event*[]", count)
    table = handle.library.extension("CrossHostTransfers")
    args = table.call(
        "Transfers_Client_CrossHostSendBuffers",
        client=handle.pointer,
        num_buffers=count,
        buffers=ffi.new("PJRT_Buffer*[]", [buffer._live() for buffer in buffers]),
        dst_global_device_ids=ffi.new("int64_t[]", list(devices)),
        transfer_keys=ffi.new("int64_t[]", list(keys)),
        send_events=events,
    )
    return [Event(handle, event) for event in table.handles(args, "send_events", "num_buffers")]


def receive(
    client: Client,
    device: Device,
    types: Sequence[TensorType],
    devices: Sequence[int],
    keys: Sequence[int],
) -> list[Buffer]:
    """Returns buffers on ``device`` for the data that the devices with those global ids send."""
    count = _require_same_length(types=types, devices=devices, keys=keys)
    handle = client.handle()
    specs = [BufferSpec(handle, t.shape, t.dtype, device) for t in types]
    buffers = ffi.new("PJRT_Buffer*[]", count)
    table = handle.library.extension("CrossHostTransfers")
    args = table.call(
        "Transfers_Client_CrossHostReceiveBuffers",
        client=handle.pointer,
        num_shapes=count,
        shape_num_dims=ffi.new("size_t[]", [len(s.shape) for s in specs]),
        num_dims=ffi.new("const int64_t*[]", [s.dims for s in specs]),
        element_types=ffi.new("PJRT_Buffer_Type[]", [s.element_type for s in specs]),
        layouts=ffi.new("PJRT_Buffer_MemoryLayout*[]", [s.layout for s in specs]),
        device=device.pointer,
        src_global_device_ids=ffi.new("int64_t[]", list(devices)),
        transfer_keys=ffi.new("int64_t[]", list(keys)),
        buffers=buffers,
    )
    made = table.handles(args, "buffers", "num_shapes")
    return [Buffer(pointer, spec) for pointer, spec in zip(made, specs, strict=True)]
