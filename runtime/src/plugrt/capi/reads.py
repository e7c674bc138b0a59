"""`read`: the contents of a buffer as a NumPy array."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from plugrt.capi import values
from plugrt.capi._abi import ffi
from plugrt.capi.events import await_and_destroy
from plugrt.capi.specs import BufferSpec
from plugrt.capi.tables import new_struct
from plugrt.errors import PjrtError, Unimplemented

if TYPE_CHECKING:
    from plugrt.capi.handle import ClientHandle

LOOK = True
"""Whether memory that the host can address is looked at where it is, instead of transferred."""
_BYTES = ffi.typeof("char*")


class Looker:
    """Waits for buffers and says where they are; its argument structs serve one call."""

    __slots__ = (
        "_address", "_await", "_await_args", "_destroy", "_destroy_args", "_home", "_increase",
        "_increase_args", "_ready", "_ready_args", "_where",
    )  # fmt: skip

    def __init__(self, home: ClientHandle) -> None:
        self._home = home
        slot = home.library.hot_slot
        self._increase = slot("Buffer_IncreaseExternalReferenceCount")
        self._ready = slot("Buffer_ReadyEvent")
        self._await = slot("Event_Await")
        self._destroy = slot("Event_Destroy")
        self._where = slot("Buffer_UnsafePointer")
        self._increase_args = new_struct("struct PJRT_Buffer_IncreaseExternalReferenceCount_Args")
        self._ready_args = new_struct("struct PJRT_Buffer_ReadyEvent_Args")
        self._await_args = new_struct("struct PJRT_Event_Await_Args")
        self._destroy_args = new_struct("struct PJRT_Event_Destroy_Args")
        self._address = new_struct("struct PJRT_Buffer_UnsafePointer_Args")

    def wait(self, pointer: Any) -> None:
        """Returns when the buffer's contents are there; raises if making them failed."""
        args = self._ready_args
        args.buffer = pointer
        error = self._ready(args)
        if error:
            raise self._home.library.take_error(error)
        self._await_args.event = self._destroy_args.event = args.event
        failed = self._await(self._await_args)
        error = self._destroy(self._destroy_args)
        if error or failed:
            raise self._home.library.take_error(failed or error)

    def address(self, pointer: Any) -> int:
        """Waits for the buffer and returns where it is; the caller releases the reference.

        The reference keeps the memory although the buffer may be deleted or donated meanwhile;
        XLA's CPU client then copies for the launch that was to take it.
        """
        self._increase_args.buffer = self._address.buffer = pointer
        error = self._increase(self._increase_args)
        if error:
            raise self._home.library.take_error(error)
        try:
            self.wait(pointer)
            error = self._where(self._address)
            if error:
                raise self._home.library.take_error(error)
        except BaseException:
            _release(self._home, pointer, None, None)
            raise
        return int(self._address.buffer_pointer)


def wait_for(home: ClientHandle, pointer: Any) -> None:
    """Returns when a buffer's contents are there; raises if making them failed."""
    try:
        looker = home.lookers.pop()
    except IndexError:
        looker = Looker(home)
    looker.wait(pointer)
    home.lookers.append(looker)
    if home.pending:
        home.sweep()


class Lease:
    """Destroys a ``PJRT_Buffer`` when the buffer's object and all views of it are gone.

    It keeps the client's handle, not its object: an array of numbers is no reason for a backend
    to stay.
    """

    __slots__ = ("_home", "_pointer")

    def __init__(self, home: ClientHandle, pointer: Any) -> None:
        self._home = home
        self._pointer = pointer

    def __del__(self) -> None:
        self._home.release("Buffer_Destroy", "buffer", self._pointer)


def _release(home: ClientHandle, pointer: Any, lease: Lease | None, _: Any) -> None:
    """Gives the reference back, and after that the lease."""
    home.release("Buffer_DecreaseExternalReferenceCount", "buffer", pointer)


def _view(home: ClientHandle, pointer: Any, spec: BufferSpec, lease: Lease) -> npt.NDArray[Any]:
    """Returns the buffer's memory as a read-only array that keeps it alive."""
    try:
        looker = home.lookers.pop()
    except IndexError:
        looker = Looker(home)
    address = ffi.cast(_BYTES, looker.address(pointer))
    home.lookers.append(looker)
    kept = ffi.gc(address, partial(_release, home, pointer, lease), spec.nbytes)
    memory = memoryview(ffi.buffer(kept, spec.nbytes)).toreadonly()
    return np.frombuffer(memory, spec.dtype).reshape(spec.stored_shape)


def read(
    home: ClientHandle, pointer: Any, spec: BufferSpec, lend: Callable[[Any], Lease | None]
) -> npt.NDArray[Any]:
    """Returns the contents once they are there; strided where the device's order is not C's.

    They are a view of the buffer's memory where the host can address it and ``lend(pointer)``
    gives a lease of it.
    """
    if spec.direct is None:
        _examine(home, pointer, spec)
    lease = lend(pointer) if spec.direct and LOOK else None
    if lease is not None:
        out = _view(home, pointer, spec, lease)
    else:
        out = np.empty(spec.stored_shape, spec.dtype)
        if spec.nbytes == 0:
            wait_for(home, pointer)
        else:
            _transfer(home, pointer, spec, out)
        out.flags.writeable = False
    if home.pending:
        home.sweep()
    return out if spec.axes is None else out.transpose(spec.axes)


def _transfer(home: ClientHandle, pointer: Any, spec: BufferSpec, out: npt.NDArray[Any]) -> None:
    args = home.library.call(
        "Buffer_ToHostBuffer",
        src=pointer,
        host_layout=spec.layout,
        dst=ffi.cast("void*", out.__array_interface__["data"][0]),
        dst_size=spec.nbytes,
    )
    await_and_destroy(home, args.event)


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
