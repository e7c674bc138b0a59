"""Stream: orders a device's work with work that other libraries enqueue on its streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plugrt.capi.loading.library import Library

if TYPE_CHECKING:
    from plugrt.capi.abi._abi import CData


def stream_for_external_ready_events(library: Library, device: object) -> int:
    """Returns a stream of a ``PJRT_Device*``, where other libraries wait for their own work."""
    table = library.extension("Stream")
    return int(table.call("Get_Stream_For_External_Ready_Events", device=device).stream)


def wait_until_ready_on_stream(library: Library, buffer: CData, stream: int) -> None:
    """Makes a stream wait for a ``PJRT_Buffer*``, without blocking the caller."""
    table = library.extension("Stream")
    table.call("Wait_Until_Buffer_Ready_On_Stream", stream=stream, buffer=buffer)
