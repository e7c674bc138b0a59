"""Buffers over existing memory: a DLPack capsule's, or memory at an address."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable

from plugrt import interface
from plugrt.base import dlpack_types
from plugrt.capi.abi._abi import ffi
from plugrt.capi.buffers import dlpack
from plugrt.capi.buffers.buffer import Buffer
from plugrt.capi.buffers.buffer_spec import BufferSpec, make_layout
from plugrt.capi.buffers.dlpack_host import host_array
from plugrt.capi.devices.devices import Device
from plugrt.capi.library.callback_threads import c_callback, mark_callback
from plugrt.capi.library.client_handle import ClientHandle
from plugrt.errors import InvalidArgument

# Process-wide: numbers `_imported`.
_keys = itertools.count(1)
# Process-wide: a library in C has only a number, and ends its use at any time.
_imported: dict[int, _ImportedView] = {}

_ALIGNMENT = 16
"""The alignment of device memory: XLA refuses to launch with arguments elsewhere on a GPU
(``kEntryParameterAlignBytes``), and does not say so when it makes the view."""


def import_capsule(
    handle: ClientHandle, capsule: object, device: Device, stream: int | None = None
) -> interface.Buffer:
    """Returns a buffer over the memory of a ``dltensor`` capsule, which is marked as used.

    Its contents are ready when ``stream`` has finished its work, at once without one. Host memory
    is copied if it is not in C order, which programs require, if the library requires another
    alignment, and if the device has its own memory. Raises `InvalidArgument` for device memory that
    belongs to another device, is not in C order, or not aligned to 16 bytes.
    """
    taken = dlpack.take(capsule)
    try:
        return _import(handle, taken, device, stream)
    except BaseException:  # an interrupt, too
        # Released here: a stored exception may keep `taken` in its frames.
        taken.release()
        raise


def _import(
    handle: ClientHandle, taken: dlpack.Taken, device: Device, stream: int | None
) -> interface.Buffer:
    tensor = dlpack.read_managed(taken.managed)
    if tensor.device_type not in dlpack_types.ON_HOST:
        _require_shareable(tensor, device)
        if 0 not in tensor.shape:  # else there is no memory, and it may have no address
            return _share(handle, taken, tensor, device, stream)
    elif tensor.is_in_c_order and _is_on_host(device):
        with contextlib.suppress(InvalidArgument):
            return _share(handle, taken, tensor, device, None)
    array = host_array(tensor.address, tensor.shape, tensor.strides, tensor.dtype)
    made = device.client.buffer_from_host(array, device)
    taken.release()
    return made


def _share(
    handle: ClientHandle,
    taken: dlpack.Taken,
    tensor: dlpack.Tensor,
    device: Device,
    stream: int | None,
) -> Buffer:
    spec = BufferSpec(handle, tensor.shape, tensor.dtype, device)
    return view(handle, tensor.address, spec, None, taken.release, stream)


def _is_on_host(device: Device) -> bool:
    """Whether the host reads the device's buffers in place, so that they can be in its memory."""
    client = device.client
    found = client.capabilities
    return found.dlpack and (found.zero_copy_get or client.platform not in dlpack_types.OF_DEVICES)


def _require_shareable(tensor: dlpack.Tensor, device: Device) -> None:
    """Raises `InvalidArgument`, with the cure, unless a device can use a tensor where it is."""
    platform = dlpack_types.PLATFORMS.get(tensor.device_type)
    place = (tensor.device_type, tensor.device_id)
    what = f"the capsule's memory (DLPack device {place}, {tensor.dtype}, shape {tensor.shape})"
    if (
        platform != device.platform
        or tensor.device_id != device.local_hardware_id
        or _is_on_host(device)
    ):
        raise InvalidArgument(
            f"{what} is not that of {device!r} (platform {device.platform!r}, local hardware id "
            f"{device.local_hardware_id}) and cannot be shared with it; copy the array there first"
        )
    if 0 in tensor.shape:  # there is nothing to share
        return
    if not tensor.is_in_c_order:
        raise InvalidArgument(
            f"{what} has the strides {tensor.strides}, and {device!r} takes arrays in C order; "
            "make a contiguous copy first"
        )
    if tensor.address % _ALIGNMENT:
        raise InvalidArgument(
            f"{what} begins at {tensor.address:#x}, and programs on {device!r} take arrays at a "
            f"multiple of {_ALIGNMENT} bytes; make a copy (a clone) first"
        )


class _ImportedView:
    """Calls ``done`` once the view was made and released, in whichever order.

    Some libraries call back for a view that they refuse, whose memory is then still to be copied.
    """

    __slots__ = ("_done", "_steps")

    def __init__(self, done: Callable[[], None]) -> None:
        self._done, self._steps = done, itertools.count()

    def finish_step(self) -> None:
        if next(self._steps) == 1:
            self._done()


def view(
    handle: ClientHandle,
    address: int,
    spec: BufferSpec,
    strides: tuple[int, ...] | None,
    done: Callable[[], None],
    stream: int | None = None,
) -> Buffer:
    """Returns a buffer over existing memory; ``done`` is called once, when it is released.

    It is not called for a view that is refused. ``strides`` are in elements; raises
    `InvalidArgument` unless they describe a dense array. The contents are ready when ``stream`` has
    finished its work; at once without one.
    """
    layout, _keep = make_layout(spec.shape, strides)
    key = next(_keys)
    imported = _imported[key] = _ImportedView(done)
    try:
        args = handle.library.call(
            "Client_CreateViewOfDeviceBuffer",
            client=handle.pointer,
            device_buffer_ptr=ffi.cast("void*", address),
            dims=spec.dims,
            num_dims=len(spec.shape),
            element_type=spec.element_type,
            layout=layout,
            device=spec.device.pointer,
            on_delete_callback=_release_view,
            on_delete_callback_arg=ffi.cast("void*", key),
            stream=stream or 0,
        )
        buffer = Buffer(args.buffer, spec)
        imported.finish_step()
        return buffer
    except BaseException:  # an interrupt, too: no other code removes it
        _imported.pop(key, None)
        raise


@c_callback("void(*)(void*, void*)")
@mark_callback
def _release_view(_pointer: object, key: object) -> None:
    imported = _imported.pop(int(ffi.cast("uintptr_t", key)), None)
    if imported is not None:
        imported.finish_step()
