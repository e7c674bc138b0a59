"""`Buffer`: an array of a library on one device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from plugrt import interface
from plugrt.capi._abi import ffi
from plugrt.capi.devices import Device, Memory
from plugrt.capi.events import Event, await_and_destroy
from plugrt.capi.executables import Executable
from plugrt.capi.reads import Lease, minor_to_major, read, wait_for
from plugrt.capi.specs import BufferSpec
from plugrt.errors import DeletedBuffer, InvalidArgument

_Place = TypeVar("_Place", Device, Memory)


class Buffer(interface.Buffer, Sequence[interface.Buffer]):
    """A ``PJRT_Buffer`` that this object owns.

    It is also the sequence of itself alone, the shards of an array on one device: a launch then
    takes its arguments and makes its results without a tuple for each.

    ``_pointer`` is None once it is deleted or donated; the handle is then kept in ``_dead`` until
    nobody refers to this object, because another thread may be launching with it.
    """

    __slots__ = ("_dead", "_lease", "_pointer", "_reason", "_spec")

    def __init__(self, pointer: Any, spec: BufferSpec) -> None:
        self._pointer = pointer
        self._spec = spec

    def __del__(self) -> None:
        home = self._spec.home
        frames = home.destroy_frames
        try:
            args = frames.pop()
        except IndexError:
            args = home.new_destroy_frame()
        pointer = self._pointer
        args.buffer = self._dead if pointer is None else pointer
        error = home.buffer_destroy(args)
        if error:
            home.library.take_error(error)
        frames.append(args)

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
    def dtype(self) -> np.dtype[Any]:
        return self._spec.dtype

    @property
    def device(self) -> Device:
        return self._spec.device

    @property
    def memory(self) -> Memory:
        memory = self._spec.memory
        return self._spec.device.default_memory() if memory is None else memory

    @property
    def backend_name(self) -> str:
        return self._spec.device.client.backend_name

    def _live(self) -> Any:
        """Returns the pointer; raises `DeletedBuffer` when there is none."""
        if self._pointer is None:
            raise DeletedBuffer(
                f"this buffer ({self._spec.tensor_type} on {self._spec.device!r}) {self._reason}"
            )
        return self._pointer

    def to_host(self) -> npt.NDArray[Any]:
        return read(self._spec.home, self._live(), self._spec, self._lend)

    def _lend(self, pointer: Any) -> Lease | None:
        """Returns what destroys the ``PJRT_Buffer`` from now on; None if it cannot be lent."""
        home = self._spec.home
        with home.lock:
            if type(self) is Buffer:
                self._lease = Lease(home, pointer)
                # The usual finaliser is not to pay for a question that only these need.
                self.__class__ = LentBuffer
            return self._lease

    def block_until_ready(self) -> None:
        wait_for(self._spec.home, self._live())

    def delete(self) -> None:
        if self._pointer is not None:
            self._spec.home.library.call("Buffer_Delete", buffer=self._pointer)
            self._retire("was deleted")

    def _retire(self, reason: str) -> None:
        """Makes it unusable; ``reason`` says what happened to it."""
        self._dead = self._pointer
        self._reason = reason
        self._pointer = None

    def is_deleted(self) -> bool:
        return self._pointer is None

    def _was_donated(self, by: Executable, known: bool) -> None:
        """Notes that a launch of ``by`` took the memory; where that is not known, if it did."""
        pointer = self._pointer
        if pointer is None:
            return
        call = self._spec.home.library.call
        if not call("Buffer_IsDeleted", buffer=pointer).is_deleted:
            if not known:
                return
            call("Buffer_Delete", buffer=pointer)
        self._retire(f"was donated to a launch of {by.name!r}")

    def ready_event(self) -> Event:
        home = self._spec.home
        return Event(home, home.library.call("Buffer_ReadyEvent", buffer=self._live()).event)

    def on_device_size_in_bytes(self) -> int:
        args = self._spec.home.library.call("Buffer_OnDeviceSizeInBytes", buffer=self._live())
        return int(args.on_device_size_in_bytes)

    def copy_to_device(self, device: interface.Device) -> Buffer:
        spec, home = self._spec, self._spec.home
        target = _mine(device, Device, spec)
        pointer = self._live()
        if not self._in_c_order():
            return target.client.buffer_from_host(self.to_host(), target)
        args = home.library.call("Buffer_CopyToDevice", buffer=pointer, dst_device=target.pointer)
        return Buffer(args.dst_buffer, BufferSpec(home, spec.shape, spec.dtype, target))

    def copy_to_memory(self, memory: interface.Memory) -> Buffer:
        spec, home = self._spec, self._spec.home
        target = _mine(memory, Memory, spec)
        pointer = self._live()
        if not self._in_c_order():
            device = target.addressable_by_devices()[0]
            return target.client.buffer_from_host(self.to_host(), device, target)
        args = home.library.call("Buffer_CopyToMemory", buffer=pointer, dst_memory=target.pointer)
        device = target.addressable_by_devices()[0]
        return Buffer(args.dst_buffer, BufferSpec(home, spec.shape, spec.dtype, device, target))

    def _in_c_order(self) -> bool:
        """Whether a copy keeps its meaning: libraries copy the bytes and forget another order."""
        order = self.minor_to_major()
        return order is None or order == tuple(range(len(self.shape)))[::-1]

    def unsafe_pointer(self) -> int:
        args = self._spec.home.library.call("Buffer_UnsafePointer", buffer=self._live())
        return int(args.buffer_pointer)

    def to_dlpack(self, stream: int | None = None) -> Any:
        from plugrt.capi.dlpack import export

        return export(self)

    def dlpack_device(self) -> tuple[int, int]:
        from plugrt.capi.dlpack import dlpack_device

        return dlpack_device(self)

    def copy_raw_to_host(self, offset: int, size: int) -> bytes:
        """Returns ``size`` bytes of the device's memory from ``offset`` on (PJRT 0.56)."""
        out = ffi.new("char[]", max(size, 1))
        home = self._spec.home
        args = home.library.call(
            "Buffer_CopyRawToHost",
            buffer=self._live(),
            dst=out,
            offset=offset,
            transfer_size=size,
        )
        await_and_destroy(home, args.event)
        return bytes(ffi.buffer(out, size))

    def minor_to_major(self) -> tuple[int, ...] | None:
        """The order of the dimensions in memory, None where the layout is not just that."""
        return minor_to_major(self._spec.home, self._live())


class LentBuffer(Buffer):
    """A buffer whose memory is, or was, viewed: its lease destroys it."""

    __slots__ = ()

    def __del__(self) -> None:
        pass


class AliasedBuffer(Buffer):
    """A buffer that uses the memory of a host array, which it keeps until the library is done."""

    __slots__ = ("_array", "_event")

    def __init__(self, pointer: Any, spec: BufferSpec, event: Any, array: Any) -> None:
        super().__init__(pointer, spec)
        self._event = event
        self._array = array
        spec.home.aliased[id(self)] = array

    def _lend(self, pointer: Any) -> Lease | None:
        return None  # the memory is the host array's, which goes with this object

    def __del__(self) -> None:
        home = self._spec.home
        if not home.exiting:
            super().__del__()
            home.hold(self._event, self._array)
            del home.aliased[id(self)]


def _mine(place: object, kind: type[_Place], spec: BufferSpec) -> _Place:
    if not isinstance(place, kind) or place.client is not spec.device.client:
        raise InvalidArgument(
            f"{place!r} belongs to another client than the buffer on {spec.device!r}; copy "
            "through the host instead"
        )
    return place
