"""Stream: orders a device's work with work that other libraries enqueue on its streams."""

from __future__ import annotations

from plugrt.capi.buffer import Buffer
from plugrt.capi.devices import Device


def stream_for_external_ready_events(device: Device) -> int:
    """Returns the stream on which other libraries wait for, or record, events of a device."""
    table = device.client.library.extension("Stream")
    args = table.call("Get_Stream_For_External_Ready_Events", device=device.pointer)
    return int(args.stream)


def wait_until_ready_on_stream(buffer: Buffer, stream: int) -> None:
    """Makes a stream wait for a buffer, without blocking the caller."""
    table = buffer._spec.handle.library.extension("Stream")
    table.call("Wait_Until_Buffer_Ready_On_Stream", stream=stream, buffer=buffer._live())
