"""`Buffer`: an array of a library on one device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from plugrt import interface
from plugrt.base import dlpack_types
from plugrt.capi.abi import c_values
from plugrt.capi.abi._abi import ffi
from plugrt.capi.buffers import dlpack, host_read
from plugrt.capi.buffers.buffer_base import BufferBase, as_made_by_launches
from plugrt.capi.buffers.buffer_spec import BufferSpec
from plugrt.capi.buffers.host_read import minor_to_major, read, wait_for
from plugrt.capi.buffers.launch_holds import delete_later
from plugrt.capi.buffers.native_read import is_small
from plugrt.capi.devices.devices import Device, Memory
from plugrt.capi.extensions import layouts
from plugrt.capi.extensions import stream as streams
from plugrt.capi.library.events import Event, await_transfer, lend
from plugrt.capi.loading.owned_handles import address_of, own
from plugrt.errors import (
    DeletedBuffer,
    InvalidArgument,
    OutOfRange,
    PjrtError,
    Unimplemented,
    UnsupportedDtype,
)
from plugrt.frames.argument_errors import with_argument_errors

if TYPE_CHECKING:
    from plugrt.capi.abi._abi import CData

_Place = TypeVar("_Place", Device, Memory)


@as_made_by_launches
class Buffer(BufferBase, interface.Buffer, Sequence[interface.Buffer]):
    """A ``PJRT_Buffer`` that this object owns.

    It is also a sequence with itself as only item, the shards of an array on one device: a launch
    then needs no tuple for each argument and each result.

    ``_pointer`` is None once it is deleted or donated; the handle is then kept in ``_dead`` until
    the last reference to this object is dropped: another thread may be launching with it.
    """

    __slots__ = ("_owner",)

    def __init__(self, pointer: CData, spec: BufferSpec) -> None:
        self._pointer = pointer
        self._spec = spec

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[Buffer]:
        yield self

    def __getitem__(self, index: Any) -> Any:
        return (self,)[index]

    @property
    def shape(self) -> tuple[int, ...]:
        return self._spec.shape

    @property
    def dtype(self) -> np.dtype[np.generic]:
        return self._spec.dtype

    @property
    def device(self) -> Device:
        return self._spec.device

    @property
    def memory(self) -> Memory:
        memory = self._spec.memory
        return self._spec.device.default_memory() if memory is None else memory

    @property
    def layout(self) -> interface.Layout:
        pointer = self._live()
        try:
            return layouts.buffer_layout(self._spec.handle.library, pointer)
        except PjrtError as error:
            raise self._explain(error) from None

    @property
    def backend_name(self) -> str:
        return self._spec.device.client.backend_name

    def _live(self) -> CData:
        """Returns the pointer; raises `DeletedBuffer` if there is none."""
        pointer = self._pointer
        if pointer is None:
            raise self._make_deleted_error(self.deletion_reason)
        return pointer

    def _make_deleted_error(self, deletion_reason: str) -> DeletedBuffer:
        return DeletedBuffer(
            f"this buffer ({self._spec.tensor_type} on {self._spec.device!r}) {deletion_reason}"
        )

    @property
    def deletion_reason(self) -> str:
        """Why it is unusable, for messages."""
        if self._pointer is None:
            return getattr(self, "_reason", "was freed")
        owner = self._spec.handle.library.owner
        return getattr(self, "_reason", f"was deleted or donated meanwhile, as {owner} says")

    def is_gone(self) -> bool:
        """Whether it is deleted or donated, also by another thread right now."""
        pointer = self._pointer
        if pointer is None:
            return True
        try:
            return self._is_taken(pointer, False)
        except PjrtError:
            return False

    def _is_taken(self, pointer: CData, known: bool) -> bool:
        """Whether the library reports it as deleted or donated; ``known`` if it cannot report
        that.
        """
        library = self._spec.handle.library
        return library.ways.take(
            "deletion", "",
            lambda: bool(library.call("Buffer_IsDeleted", buffer=pointer).is_deleted),
            lambda: known,
        )  # fmt: skip

    def _explain(self, error: PjrtError) -> Exception:
        """Returns the error of a call, or `DeletedBuffer` if another thread deleted the buffer."""
        if isinstance(error, Unimplemented) or not self.is_gone():
            return error
        return self._make_deleted_error(self.deletion_reason)

    def _call(self, function: str, **inputs: object) -> CData:
        """Calls a function whose argument ``buffer`` is this one; see `Table.call`."""
        pointer = self._live()
        try:
            return self._spec.handle.library.call(function, buffer=pointer, **inputs)
        except PjrtError as error:
            raise self._explain(error) from None

    def to_host(self) -> npt.NDArray[np.generic]:
        return self._read(False)

    def read_to_host(self) -> npt.NDArray[np.generic]:
        """Returns the contents like `to_host`, but copies small ones: cheaper than a view."""
        return self._read(True)

    def _read(self, copies: bool) -> npt.NDArray[np.generic]:
        read_in_core = self._spec.reader
        if read_in_core is not None and host_read.VIEW_HOST_MEMORY:
            host: npt.NDArray[np.generic] | None = None
            if copies or not is_small(self._spec):
                host = read_in_core(self)
            if host is not None:
                return host
        pointer = self._live()
        try:
            return read(self._spec.handle, pointer, self._spec, self._share, copies)
        except PjrtError as error:
            raise self._explain(error) from None

    def _share(self, pointer: CData) -> CData | None:
        """Returns the pointer as an object that owns the ``PJRT_Buffer`` from now on.

        None if it cannot be shared.
        """
        handle = self._spec.handle
        with handle.lock:
            if type(self) is Buffer:
                owner = self._view_owner
                free = handle.free_buffer if owner is None else owner.destroy
                self._owner = own(pointer, free, group=handle.exiting)
                # A separate class, so that the common ``__del__`` has no extra branch.
                self.__class__ = ViewedBuffer
            return self._owner

    def block_until_ready(self) -> None:
        pointer = self._live()
        try:
            wait_for(self._spec.handle, pointer)
        except PjrtError as error:
            raise self._explain(error) from None
        self._awaited = True

    def delete(self) -> None:
        # First, so that concurrent calls report the deletion and not a library's error.
        if self._retire("was deleted") is not None and not delete_later(self):
            self._delete_now()

    def _delete_now(self) -> None:
        """Makes the library free the memory; launches that hold the buffer do so at their end."""
        if not self._spec.handle.exiting:
            self._spec.handle.delete_buffer(self._dead)

    def _retire(self, reason: str) -> CData | None:
        """Makes it unusable for that ``reason``. Returns the pointer if it had one."""
        with self._spec.handle.lock:
            pointer = self._pointer
            if pointer is not None:
                self._dead = pointer
                self._reason = reason
                self._pointer = None
            return pointer

    def is_deleted(self) -> bool:
        return self._pointer is None

    def _note_donation(self, reason: str, known: bool) -> None:
        """Records a donation for that ``reason``, but if not ``known`` only if the library has."""
        pointer = self._pointer
        if pointer is None:
            return
        taken = self._is_taken(pointer, known)  # otherwise trusts the program
        if not taken and not known:
            return
        # Retired first: a launch that begins after the deletion refuses it on all devices at once.
        if self._retire(reason) is not None and not taken and not delete_later(self):
            self._delete_now()

    def ready_event(self) -> Event:
        event = Event(self._spec.handle, self._call("Buffer_ReadyEvent").event)
        if self.is_gone():  # then the event may be the deletion's, not the contents'
            raise self._make_deleted_error(self.deletion_reason)
        return event

    def on_device_size_in_bytes(self) -> int:
        """Returns the size that the library states, else the one that the type needs."""
        pointer = self._live()
        try:
            return host_read.size_of(pointer, self._spec)
        except PjrtError as error:
            raise self._explain(error) from None

    def copy_to_device(self, device: interface.Device) -> interface.Buffer:
        spec = self._spec
        target = _require_own(device, Device, spec)
        memory = target.default_memory_or_none
        ordered = self._is_in_c_order()
        return self._copy(
            "copy to a device", spec.on(target), self._to_device(target) if ordered else None,
            self._to_memory(memory) if ordered and memory else None,
            lambda: target.client.buffer_from_host(self.to_host(), target),
        )  # fmt: skip

    def _copy(
        self, operation: str, made: BufferSpec, *ways: Callable[[], CData | interface.Buffer] | None
    ) -> interface.Buffer:
        """Returns a copy by the first way that works: a handle, or for the last way a buffer."""
        self._live()
        spec = self._spec
        key = (*spec.key(), getattr(made.memory, "kind", ""))
        found = spec.handle.library.ways.take(operation, key, *ways)
        return found if isinstance(found, interface.Buffer) else Buffer(found, made)

    def _to_device(self, device: Device) -> Callable[[], CData]:
        return lambda: self._call("Buffer_CopyToDevice", dst_device=device.pointer).dst_buffer

    def _to_memory(self, memory: Memory) -> Callable[[], CData]:
        return lambda: self._call("Buffer_CopyToMemory", dst_memory=memory.pointer).dst_buffer

    def copy_to_memory(self, memory: interface.Memory) -> interface.Buffer:
        spec = self._spec
        target = _require_own(memory, Memory, spec)
        self._live()
        device = target.first_device()
        ordered = self._is_in_c_order()
        default = device.default_memory_or_none is target
        return self._copy(
            "copy to a memory", spec.on(device, target),
            self._to_memory(target) if ordered else None,
            self._to_device(device) if ordered and default else None,
            lambda: target.client.buffer_from_host(self.to_host(), device, target),
        )  # fmt: skip

    def _is_in_c_order(self) -> bool:
        """Whether the layout is C order: libraries copy the bytes and lose any other layout.

        Raises `Unimplemented` for a token.
        """
        # Workaround for xla-token-dimensions
        if self._spec.tensor_type.is_token:
            self._unimplemented("a copy of a token")
        if len(self.shape) < 2:  # one dimension has one order
            return True
        order = self.minor_to_major()
        return order is None or order == self._c_order()

    def _c_order(self) -> tuple[int, ...]:
        return tuple(range(len(self.shape)))[::-1]

    def unsafe_pointer(self) -> int:
        return int(self._call("Buffer_UnsafePointer").buffer_pointer)

    def refer(self) -> CData:
        """Returns an external reference: the memory stays until the returned object is freed.

        Waits for the buffer first, as XLA does then, so that no other thread waits for the lock.
        """
        self.block_until_ready()
        return self._take_reference()

    def _take_reference(self) -> CData:
        """Returns an external reference to memory that is known to be there."""
        handle, pointer = self._spec.handle, self._live()
        with handle.lock:
            self._call("Buffer_IncreaseExternalReferenceCount")
        return own(pointer, handle.drop_reference, lends=pointer, keep=self)

    def _refer_if_possible(self) -> CData | None:
        try:
            return self.refer()
        except Unimplemented:
            return None

    def release_at_exit(self) -> None:
        """Passes its handle to its client's group, which `owned_handles.free_group` frees."""
        pointer = self._pointer
        self._share(self._dead if pointer is None else pointer)

    def to_dlpack(self, stream: int | None = None) -> object:
        device, spec = self.dlpack_device(), self._spec
        dlpack.get_type_code(spec.dtype)  # raises for a dtype before any wait
        if self.minor_to_major() != self._c_order():
            raise UnsupportedDtype(
                f"{spec.tensor_type} has a memory layout that DLPack cannot describe, or that "
                f"{spec.handle.library.owner} does not state"
            )
        if device[0] in dlpack_types.ON_HOST or not self._is_ordered_on(stream):
            self.block_until_ready()
        reference = self._take_reference()
        return dlpack.export(self.unsafe_pointer(), spec.shape, spec.dtype, device, reference)

    def _is_ordered_on(self, stream: int | None) -> bool:
        """Whether a consumer's work on ``stream`` comes after the contents without more waiting."""
        if stream == dlpack_types.NO_WAIT:
            # XLA may wait for the memory (not the contents) when an external reference is taken,
            # which is done with the lock: this waits without it.
            self.unsafe_pointer()
            return True
        # Not every library accepts the default streams (None, 0, 1, 2) as handles: the host waits
        # instead, after which all streams see the contents.
        if stream is None or stream <= 2:
            return False
        try:
            streams.wait_until_ready_on_stream(self._spec.handle.library, self._live(), stream)
        except Unimplemented:
            return False
        except PjrtError as error:
            raise self._explain(error) from None
        return True

    def dlpack_device(self) -> tuple[int, int]:
        device, memory = self._spec.device, self._spec.memory
        platform = device.platform
        if self._call("Buffer_IsOnCpu").is_on_cpu:
            pinned = memory is not None and memory.kind == "pinned_host"
            if pinned and platform in dlpack_types.OF_PINNED_HOST:  # as in JAX
                return dlpack_types.OF_PINNED_HOST[platform], device.local_hardware_id
            return dlpack_types.CPU, 0
        if platform not in dlpack_types.OF_DEVICES:
            self._unimplemented("dlpack_device for memory other than the host's or a GPU's")
        return dlpack_types.OF_DEVICES[platform], device.local_hardware_id

    @with_argument_errors
    def copy_raw_to_host(self, offset: int, size: int) -> bytes:
        """Returns ``size`` bytes of the device's memory from ``offset`` on (PJRT 0.56)."""
        whole = self.on_device_size_in_bytes()
        if offset < 0 or size < 0 or offset + size > whole:
            raise OutOfRange(
                f"{size} bytes at offset {offset} are not within the {whole} bytes that this "
                f"buffer of {self._spec.handle.library.owner} has"
            )
        out = c_values.allocate(size)
        # Workaround for xla-raw-copy-race
        # XLA's CPU client (xla-cpu-pjrt 0.0.1) dereferences NULL if another thread deletes or
        # donates the buffer during this call, unless there is an external reference.
        reference = self._refer_if_possible()
        try:
            with lend(out):
                args = self._call(
                    "Buffer_CopyRawToHost", dst=out, offset=offset, transfer_size=size
                )
            await_transfer(self._spec.handle, args.event, out)
        except PjrtError as error:
            raise self._explain(error) from None
        finally:
            del reference
        return bytes(ffi.buffer(out, size))

    def minor_to_major(self) -> tuple[int, ...] | None:
        """The order of the dimensions in memory, None for a tiled or strided layout."""
        if self._spec.tensor_type.is_token:  # Workaround for xla-token-dimensions
            return ()
        return minor_to_major(self._spec.handle, self._live())


_do_nothing: Any = tuple
"""`__del__` of buffers whose memory another object owns, in C: no signal handler runs there."""


class ViewedBuffer(Buffer):
    """A buffer whose memory is, or was, viewed: the shared owner destroys it."""

    __slots__ = ()
    __del__ = _do_nothing


class AliasedBuffer(Buffer):
    """A buffer that aliases a host array, which is kept until the library has released it."""

    __slots__ = ()

    def __init__(self, pointer: CData, spec: BufferSpec, event: object, array: object) -> None:
        handle = spec.handle

        destroyed = map(handle.free_buffer, (address_of(pointer),))
        held = iter(((event, array),))

        def free(_: object) -> None:
            next(destroyed, None)
            handle.hold(held)

        super().__init__(own(pointer, free, handle.exiting, is_repeatable=True), spec)

    def _share(self, pointer: CData) -> CData:
        """Returns the pointer, which owns the ``PJRT_Buffer`` and the host array from the start."""
        return pointer

    __del__ = _do_nothing


def _require_own(place: object, cls: type[_Place], spec: BufferSpec) -> _Place:
    if not isinstance(place, cls) or place.client is not spec.device.client:
        raise InvalidArgument(
            f"{place!r} belongs to another client than the buffer on {spec.device!r}; copy "
            "through the host instead"
        )
    return place
