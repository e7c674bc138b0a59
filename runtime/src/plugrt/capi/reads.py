"""`read`: the contents of a buffer as a NumPy array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from plugrt.capi import values
from plugrt.capi._abi import ffi
from plugrt.capi.events import await_and_destroy
from plugrt.capi.specs import BufferSpec
from plugrt.capi.tables import Slot, new_struct
from plugrt.errors import PjrtError, Unimplemented

if TYPE_CHECKING:
    from plugrt.capi.handle import ClientHandle

DIRECT_LIMIT = 1 << 20
"""Up to this size memory that the host can address is copied here: 3 µs instead of the 20 µs of a
transfer, which libraries hand to another thread. Above it the transfer is as fast, and it lets
other Python threads run."""


class DirectReader:
    """Reads small buffers whose memory the host can address; one argument struct a call."""

    __slots__ = (
        "_address", "_await", "_calls", "_decrease", "_destroy", "_home", "_increase", "_ready",
    )  # fmt: skip

    def __init__(self, home: ClientHandle) -> None:
        self._home = home
        slots = home.library.slots
        self._calls: tuple[Slot, ...] = (
            slots["Buffer_IncreaseExternalReferenceCount"],
            slots["Buffer_ReadyEvent"],
            slots["Event_Await"],
            slots["Event_Destroy"],
            slots["Buffer_UnsafePointer"],
            slots["Buffer_DecreaseExternalReferenceCount"],
        )
        self._increase = new_struct("struct PJRT_Buffer_IncreaseExternalReferenceCount_Args")
        self._decrease = new_struct("struct PJRT_Buffer_DecreaseExternalReferenceCount_Args")
        self._ready = new_struct("struct PJRT_Buffer_ReadyEvent_Args")
        self._await = new_struct("struct PJRT_Event_Await_Args")
        self._destroy = new_struct("struct PJRT_Event_Destroy_Args")
        self._address = new_struct("struct PJRT_Buffer_UnsafePointer_Args")

    def read(self, pointer: Any, out: Any, size: int) -> None:
        """Waits for the buffer and copies ``size`` bytes of it to ``out``."""
        increase, ready, wait, destroy, address, decrease = self._calls
        check = self._check
        # The reference keeps the memory although another thread may delete or donate the buffer.
        self._increase.buffer = self._decrease.buffer = pointer
        check(increase(self._increase))
        try:
            self._ready.buffer = pointer
            check(ready(self._ready))
            self._await.event = self._destroy.event = self._ready.event
            failed = wait(self._await)
            check(destroy(self._destroy))
            check(failed)
            self._address.buffer = pointer
            check(address(self._address))
            ffi.memmove(out, ffi.cast("void*", self._address.buffer_pointer), size)
        finally:
            check(decrease(self._decrease))

    def _check(self, error: Any) -> None:
        if error:
            raise self._home.library.take_error(error)


def read(home: ClientHandle, pointer: Any, spec: BufferSpec) -> npt.NDArray[Any]:
    """Returns the contents once they are there; strided where the device's order is not C's."""
    if spec.direct is None:
        _examine(home, pointer, spec)
    out = np.empty(spec.stored_shape, spec.dtype)
    size = spec.nbytes
    if size == 0:
        await_and_destroy(home, home.library.call("Buffer_ReadyEvent", buffer=pointer).event)
    elif spec.direct and size <= DIRECT_LIMIT:
        try:
            reader = home.readers.pop()
        except IndexError:
            reader = DirectReader(home)
        reader.read(pointer, ffi.from_buffer(out), size)
        home.readers.append(reader)
    else:
        args = home.library.call(
            "Buffer_ToHostBuffer",
            src=pointer,
            host_layout=spec.layout,
            dst=ffi.cast("void*", out.__array_interface__["data"][0]),
            dst_size=size,
        )
        await_and_destroy(home, args.event)
    if home.pending:
        home.sweep()
    return out if spec.axes is None else out.transpose(spec.axes)


def _examine(home: ClientHandle, pointer: Any, spec: BufferSpec) -> None:
    """Finds out, once for a spec, in which order and by which way its buffers are read.

    The order asked of a transfer is the device's own, because some libraries ignore any other.
    """
    order = minor_to_major(home, pointer)
    if order is not None and sorted(order) == list(range(len(spec.shape))):
        spec.read_in(order)
    else:
        order = None
    library = home.library
    try:
        on_host = library.call("Buffer_IsOnCpu", buffer=pointer).is_on_cpu
        size = library.call("Buffer_OnDeviceSizeInBytes", buffer=pointer).on_device_size_in_bytes
        if on_host and size:
            library.call("Buffer_UnsafePointer", buffer=pointer)
    except Unimplemented:
        on_host = False
    spec.direct = bool(on_host and order is not None and size == spec.nbytes)


def minor_to_major(home: ClientHandle, pointer: Any) -> tuple[int, ...] | None:
    """Returns the order of a buffer's dimensions in memory, None where it is not just that."""
    try:
        args = home.library.call("Buffer_GetMemoryLayout", buffer=pointer)
    except PjrtError:
        return None
    # A nested struct does not keep the struct around it alive: `args` must stay in scope.
    tiled = args.layout.tiled
    if args.layout.type != 0 or tiled.num_tiles:
        return None
    return tuple(values.unpack(tiled.minor_to_major, tiled.minor_to_major_size))
