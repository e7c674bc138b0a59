"""`read`: a buffer's contents as a NumPy array, viewed in place or transferred."""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from plugrt.capi.abi import c_values
from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.element_types import element_bits
from plugrt.capi.abi.structs import Prepared
from plugrt.capi.buffers.buffer_spec import BufferSpec
from plugrt.capi.buffers.native_read import compile_reader, is_small
from plugrt.capi.library.events import await_transfer, lend
from plugrt.capi.loading.library import Library
from plugrt.capi.loading.owned_handles import address_of, own
from plugrt.errors import InvalidArgument, InvalidReply, PjrtError, ResourceExhausted, Unimplemented

if TYPE_CHECKING:
    from plugrt.capi.abi._abi import CData
    from plugrt.capi.library.client_handle import ClientHandle

VIEW_HOST_MEMORY = True
"""Whether memory that the host can address is viewed in place instead of transferred."""
_BYTES = ffi.typeof("char*")


class HostReader:
    """Waits for buffers and returns their addresses; for one thread at a time."""

    __slots__ = (
        "_address", "_await", "_await_args", "_destroy", "_destroy_args", "_increase",
        "_increase_args", "_library", "_prepared", "_ready", "_ready_args", "_size", "_size_args",
        "_where",
    )  # fmt: skip

    def __init__(self, library: Library) -> None:
        self._library = library
        slot = library.get_hot_slot
        self._ready = slot("Buffer_ReadyEvent")
        self._await = slot("Event_Await")
        self._destroy = slot("Event_Destroy")
        self._increase = slot("Buffer_IncreaseExternalReferenceCount")
        self._where = slot("Buffer_UnsafePointer")
        self._size = slot("Buffer_OnDeviceSizeInBytes")
        self._prepared = Prepared(
            "struct PJRT_Buffer_ReadyEvent_Args",
            "struct PJRT_Event_Await_Args",
            "struct PJRT_Event_Destroy_Args",
            "struct PJRT_Buffer_IncreaseExternalReferenceCount_Args",
            "struct PJRT_Buffer_UnsafePointer_Args",
            "struct PJRT_Buffer_OnDeviceSizeInBytes_Args",
        )
        (
            self._ready_args, self._await_args, self._destroy_args, self._increase_args,
            self._address, self._size_args,
        ) = self._prepared.structs  # fmt: skip

    def wait(self, pointer: CData) -> None:
        """Waits until the buffer is ready; raises if computing it failed."""
        self._prepared.restore()
        self._wait(pointer)

    def _wait(self, pointer: CData) -> None:
        args = self._ready_args
        args.buffer = pointer
        error = self._ready(args)
        if error:
            raise self._library.error_of("Buffer_ReadyEvent", error)
        event = args.event
        if not event:
            self._library.check_handles(args, ("event",))
        self._await_args.event = self._destroy_args.event = event
        failed = self._await(self._await_args)
        if failed and self._library.substitute("Event_Await", failed, self._await_args):
            self._await = self._library.slots["Event_Await"]
            failed = self._await(self._await_args)
        error = self._destroy(self._destroy_args)
        if failed:
            raise self._library.error_of("Event_Await", failed)
        if error:
            self._library.log_failure("Event_Destroy", error)

    def take_address(self, handle: ClientHandle, pointer: CData, size: int) -> int:
        """Waits for the buffer and returns its address; the caller releases the reference.

        The reference keeps the memory valid if the buffer is deleted or donated meanwhile; XLA's
        CPU client then copies it for the launch that consumes it. The reference is acquired only
        when the buffer is ready: XLA waits for the memory, and the thread that computes it may be
        in a finaliser that waits for the lock. Raises `InvalidReply` if the buffer has less than
        ``size`` bytes, or no address.
        """
        self._prepared.restore()
        self._wait(pointer)
        self._increase_args.buffer = self._address.buffer = self._size_args.buffer = pointer
        with handle.lock:
            error = self._increase(self._increase_args)
        if error:
            raise self._library.error_of("Buffer_IncreaseExternalReferenceCount", error)
        try:
            name, error = "Buffer_UnsafePointer", self._where(self._address)
            if not error:
                name, error = "Buffer_OnDeviceSizeInBytes", self._size(self._size_args)
            if error:
                raise self._library.error_of(name, error)
            if self._size_args.on_device_size_in_bytes < size:
                raise _too_small_error(self._library, self._size_args, size)
            address = int(self._address.buffer_pointer)
            if size and not handle.is_memory(address, size):
                raise _no_memory_error(self._library, self._address, size)
        except BaseException:  # an interrupt, too: the reference is counted
            handle.drop_reference(address_of(pointer))
            raise
        return address


def _no_memory_error(library: Library, args: CData, size: int) -> InvalidReply:
    return library.invalid(
        args, f"the {size} bytes at its buffer_pointer {args.buffer_pointer:#x} are not memory"
    )


def _too_small_error(library: Library, args: CData, size: int) -> InvalidReply:
    return library.invalid(
        args,
        f"the buffer has {args.on_device_size_in_bytes} bytes where its type needs {size}: reading "
        "it would give memory that is not its own",
    )


def wait_for(handle: ClientHandle, pointer: CData) -> None:
    """Waits until a buffer is ready; raises if computing it failed."""
    try:
        reader = handle.host_readers.pop()
    except IndexError:
        reader = HostReader(handle.library)
    reader.wait(pointer)
    handle.host_readers.append(reader)
    if handle.pending:
        handle.sweep()


def _refer(handle: ClientHandle, pointer: CData, spec: BufferSpec) -> CData:
    """Returns the address of the buffer's memory, with an external reference that keeps it."""
    try:
        reader = handle.host_readers.pop()
    except IndexError:
        reader = HostReader(handle.library)
    address = reader.take_address(handle, pointer, spec.nbytes)
    handle.host_readers.append(reader)
    return ffi.cast(_BYTES, address)


def _view(
    handle: ClientHandle, pointer: CData, spec: BufferSpec, owner: CData
) -> npt.NDArray[np.generic]:
    """Returns the buffer's memory as a read-only array that keeps it alive.

    It keeps the client's handle alive, but not the `Client` object.
    """
    address = _refer(handle, pointer, spec)
    drop = partial(handle.drop_reference, address_of(owner))
    # The owner is kept, so that the buffer is destroyed after the reference.
    kept = own(address, lambda _: drop(), lends=owner, keep=owner)
    memory = memoryview(ffi.buffer(kept, spec.nbytes)).toreadonly()
    return np.frombuffer(memory, spec.dtype).reshape(spec.stored_shape)


def _copy(handle: ClientHandle, pointer: CData, spec: BufferSpec) -> npt.NDArray[np.generic]:
    """Returns a read-only copy of the buffer's memory."""
    address = _refer(handle, pointer, spec)
    contents = ffi.unpack(address, spec.nbytes)
    handle.drop_reference(address_of(pointer))
    return np.ndarray(spec.stored_shape, spec.dtype, contents)


def read(
    handle: ClientHandle,
    pointer: CData,
    spec: BufferSpec,
    share: Callable[[CData], CData | None],
    copies: bool = False,
) -> npt.NDArray[np.generic]:
    """Returns the contents once they are there; strided where the device's order is not C's.

    Where the host can address the buffer's memory they are a view of it, if ``share(pointer)``
    returns an owner of the buffer; with ``copies``, of at most `SMALL_BYTES` they are a copy.
    """
    if spec.direct is None:
        _examine(handle, pointer, spec)
    in_place: Callable[[], npt.NDArray[np.generic]] | None = None
    if VIEW_HOST_MEMORY and spec.direct:
        if copies and is_small(spec):
            in_place = functools.partial(_copy, handle, pointer, spec)
        elif (owner := share(pointer)) is not None:
            in_place = functools.partial(_view, handle, pointer, spec, owner)
    out = handle.library.ways.take(
        "read", spec.key(), in_place,
        lambda: _transfer(handle, pointer, spec, _to_host),
        (lambda: _transfer(handle, pointer, spec, _copy_raw_to_host)) if spec.raw else None,
    )  # fmt: skip
    out.flags.writeable = False
    if handle.pending:
        handle.sweep()
    return out if spec.axes is None else out.transpose(spec.axes)


def size_of(pointer: CData, spec: BufferSpec) -> int:
    """Returns the size that the library states, else the one that the type needs."""
    library = spec.handle.library
    return library.ways.take(
        "size", "",
        lambda: _read_stated_size(library, pointer),
        lambda: spec.packed_nbytes,
    )  # fmt: skip


def _read_stated_size(library: Library, pointer: CData) -> int:
    args = library.call("Buffer_OnDeviceSizeInBytes", buffer=pointer)
    return int(args.on_device_size_in_bytes)


def _require_size(library: Library, pointer: CData, least: int) -> None:
    """Raises `InvalidReply` where the library states that a buffer is smaller."""
    args = library.call("Buffer_OnDeviceSizeInBytes", buffer=pointer)
    if args.on_device_size_in_bytes < least:
        raise _too_small_error(library, args, least)


def _transfer(
    handle: ClientHandle,
    pointer: CData,
    spec: BufferSpec,
    function: Callable[[Library, CData, BufferSpec, CData], CData],
) -> npt.NDArray[np.generic]:
    """Returns a host copy of the contents, made by a function of the library."""
    handle.library.ways.take(
        "size", "",
        lambda: _require_size(handle.library, pointer, spec.packed_nbytes),
        lambda: None,
    )  # fmt: skip
    try:
        out = np.empty(spec.stored_shape, spec.dtype)
    except MemoryError:
        raise ResourceExhausted(f"{spec.tensor_type} does not fit the host's memory") from None
    if spec.nbytes == 0:
        wait_for(handle, pointer)
        return out
    with lend(out):
        to = ffi.cast("void*", out.__array_interface__["data"][0])
        event = function(handle.library, pointer, spec, to)
    await_transfer(handle, event, out)
    return out


def _to_host(library: Library, pointer: CData, spec: BufferSpec, to: CData) -> Any:
    return library.call(
        "Buffer_ToHostBuffer",
        src=pointer,
        host_layout=spec.layout,
        dst=to,
        dst_size=spec.nbytes,
    ).event


def _copy_raw_to_host(library: Library, pointer: CData, spec: BufferSpec, to: CData) -> Any:
    return library.call(
        "Buffer_CopyRawToHost", buffer=pointer, dst=to, offset=0, transfer_size=spec.nbytes
    ).event


def _examine(handle: ClientHandle, pointer: CData, spec: BufferSpec) -> None:
    """Decides, once for each spec, how its buffers are read and in which dimension order.

    Transfers use the device's own order, because some libraries ignore any other.
    """
    if spec.tensor_type.is_token:  # Workaround for xla-token-dimensions
        raise InvalidArgument(f"a token, on {spec.device!r}, orders effects and holds nothing")
    layout = spec.tensor_type.layout
    order = None if layout and layout.tiling else minor_to_major(handle, pointer)
    if order is not None and sorted(order) == list(range(len(spec.shape))):
        spec.read_in(order)
    else:
        order = None
    library = handle.library
    _check_type(handle, pointer, spec)
    whole = element_bits(spec.dtype) % 8 == 0  # the other bits of its byte are undefined
    if whole and order is not None:
        spec.raw = size_of(pointer, spec) == spec.nbytes
    spec.direct = spec.raw and library.ways.take(
        "read", spec.key(),
        lambda: _is_addressable(handle, pointer, spec),
        *(lambda: False,) * 2,
    )  # fmt: skip
    if spec.direct:
        spec.reader = compile_reader(spec)


def _is_addressable(handle: ClientHandle, pointer: CData, spec: BufferSpec) -> bool:
    """Whether the host can view the memory; `Unimplemented` where a function for it is missing."""
    library = handle.library
    size = _read_stated_size(library, pointer)
    if not library.call("Buffer_IsOnCpu", buffer=pointer).is_on_cpu:
        return False
    wait_for(handle, pointer)
    args = library.call("Buffer_UnsafePointer", buffer=pointer)
    if size and not handle.is_memory(args.buffer_pointer, size):
        raise _no_memory_error(library, args, size)
    with handle.lock:  # as for a view
        library.call("Buffer_IncreaseExternalReferenceCount", buffer=pointer)
    handle.drop_reference(address_of(pointer))
    return True


def _check_type(handle: ClientHandle, pointer: CData, spec: BufferSpec) -> None:
    """Raises `InvalidReply` for a buffer whose type differs from its spec."""
    library = handle.library
    try:
        dims = library.call("Buffer_Dimensions", buffer=pointer)
        shape = tuple(library.items(dims, "dims", "num_dims"))
        element_type = library.call("Buffer_ElementType", buffer=pointer).type
    except Unimplemented:
        return
    if (shape, element_type) != (spec.shape, spec.element_type):
        raise library.invalid(
            dims,
            f"the buffer has the shape {shape} and the element type {element_type}; "
            f"{spec.tensor_type} (element type {spec.element_type}) was expected",
        )


def minor_to_major(handle: ClientHandle, pointer: CData) -> tuple[int, ...] | None:
    """Returns the order of a buffer's dimensions in memory, None for other layouts."""
    try:
        args = handle.library.call("Buffer_GetMemoryLayout", buffer=pointer)
    except PjrtError:
        return None
    # A nested struct does not keep the struct around it alive: `args` must stay in scope.
    tiled = args.layout.tiled
    if args.layout.type != 0 or tiled.num_tiles:
        return None
    with handle.library.reading(args, "layout"):
        return tuple(c_values.unpack(tiled.minor_to_major, tiled.minor_to_major_size))
