"""A buffer copied to another device or memory."""

from __future__ import annotations

from plugrt.execution.compilation.relayout import relayout
from plugrt.interface import Buffer, Device, Layout, Memory


def copy_buffer(buffer: Buffer, device: Device, memory: Memory | None = None) -> Buffer:
    """Returns a copy of a buffer on another device, directly where the backends can do that."""
    client = device.client
    if buffer.device.client is client and client.capabilities.device_to_device_copy:
        return buffer.copy_to_memory(memory) if memory else buffer.copy_to_device(device)
    return client.buffer_from_host(buffer.to_host(), device, memory)


def copy_in_place(buffer: Buffer, layout: Layout | None) -> Buffer:
    """Returns a copy of a buffer where it is and as it lies: ``layout``, None for the default."""
    if layout is not None:
        return relayout(buffer, layout, layout)
    return copy_buffer(buffer, buffer.device, buffer.memory)
