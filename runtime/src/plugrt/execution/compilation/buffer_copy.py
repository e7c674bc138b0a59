"""Copies of a buffer: on another device, in another memory, or in another layout."""

from __future__ import annotations

from collections.abc import Sequence

from plugrt.errors import Unimplemented
from plugrt.execution.compilation.part_programs import LoadedPartProgram, layout_program
from plugrt.interface import Buffer, Device, Layout, Memory, TensorType
from plugrt.interface.checks import require_rank


def copy_buffer(buffer: Buffer, device: Device, memory: Memory | None = None) -> Buffer:
    """Returns a copy of a buffer on another device; through the host if it must."""
    client = device.client
    if buffer.device.client is client and client.capabilities.device_to_device_copy:
        return buffer.copy_to_memory(memory) if memory else buffer.copy_to_device(device)
    return client.buffer_from_host(buffer.to_host(), device, memory)


def copy_in_place(buffers: Sequence[Buffer], layout: Layout | None) -> list[Buffer]:
    """Returns copies of buffers, in the same memory; ``layout`` is theirs, None the default."""
    if layout is not None:
        return relayout(buffers, layout, layout)
    return [copy_buffer(buffer, buffer.device, buffer.memory) for buffer in buffers]


def other_layout(device: Device, tensor_type: TensorType, layout: Layout) -> Layout | None:
    """Returns the layout for buffers of a type, None if it is the device's default.

    ``tensor_type`` describes an array's part on one device, and ``device`` is any device that has a
    part.

    Raises `InvalidArgument` for a layout of another rank, and `Unimplemented` for a backend without
    layouts, or without tiles: its default has none (XLA's CPU client of xla-cpu-pjrt 0.0.1 accepts
    tiles, and reads such arrays with their elements at wrong indices).
    """
    require_rank(layout, tensor_type.shape)
    require_layouts(device, f"the layout {layout!r} of {tensor_type}")
    default = device.client.default_layout(tensor_type)
    # Workaround for xla-cpu-tiles
    if layout.tiling and not default.tiling:
        raise Unimplemented(
            f"{layout!r} of {tensor_type} on {device!r}: arrays there have no tiles; its default "
            f"is {default!r}"
        )
    return None if layout.is_met_by(default) else layout


def require_layouts(device: Device, what: str) -> None:
    """Raises `Unimplemented` unless the device's backend declares that arrays can have layouts."""
    client = device.client
    if not client.capabilities.layouts:
        raise Unimplemented(
            f"{what} is not possible on {device!r}: {client.backend_name} does not declare that "
            "arrays can lie in memory in an order that is named (capability layouts)"
        )


def relayout(
    buffers: Sequence[Buffer], source: Layout | None, target: Layout | None
) -> list[Buffer]:
    """Returns copies of an array's parts, in the layout ``source``, in the layout ``target``.

    None is the devices' default. The program is compiled once for each type and list of devices.
    Raises `UnsupportedDtype` for a dtype that StableHLO lacks.
    """
    if not buffers:  # all parts are in other processes
        return []
    held = TensorType(buffers[0].shape, buffers[0].dtype, source)
    devices = [buffer.device for buffer in buffers]
    return LoadedPartProgram(layout_program(held, target), devices)([(b,) for b in buffers])
