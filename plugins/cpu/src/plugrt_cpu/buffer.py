"""`CpuBuffer`: an array on one device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from plugrt.base.aligned_arrays import LARGE_BYTES, copy_aligned
from plugrt.errors import DeletedBuffer, InvalidArgument, PjrtError, Unimplemented
from plugrt.interface import Buffer, Device, Layout, Memory, TensorType
from plugrt.native.finalizers import End
from plugrt_cpu import adapter, dlpack
from plugrt_cpu.device import ClientBase, CpuDevice, CpuMemory, Place, require_device
from plugrt_cpu.errors import JAXLIB_ERRORS, translate_use
from plugrt_cpu.event import CpuEvent
from plugrt_cpu.tracebacks import collecting, stop_recording
from plugrt_cpu.types import BUFFER_PROTOCOL_DTYPES, array_type, is_sub_byte, layout_of

if TYPE_CHECKING:
    import numpy.typing as npt


class CpuBuffer(Buffer):
    """A jaxlib array on one device: ``raw`` is jaxlib's, ``type`` and ``place`` describe it."""

    # Python clears them in alphabetical order: ``swept`` ends after jaxlib's array.
    __slots__ = ("place", "raw", "swept", "type")
    swept: object

    def __init__(self, raw: Any, type: TensorType, place: Place) -> None:
        self.raw = raw
        self.type = type
        self.place = place

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.type.dtype

    @property
    def device(self) -> CpuDevice:
        return self.place.devices[0]

    @property
    def memory(self) -> Memory:
        return self.place.devices[0].memory(self.place.memory_kind)

    @property
    def layout(self) -> Layout:
        self._require_alive()
        return layout_of(self.type)

    def to_host(self) -> npt.NDArray[Any]:
        """Returns a read-only view of the memory.

        Returns a copy for dtypes of less than a byte, and for layouts other than row-major.
        """
        return read(self.raw, self.type)

    def delete(self) -> None:
        adapter.delete_between_launches(self.raw, self.device.client.launch_lock)

    def is_deleted(self) -> bool:
        return bool(self.raw.is_deleted())

    def ready_event(self) -> CpuEvent:
        self._require_alive()
        return CpuEvent(self.raw)

    def block_until_ready(self) -> None:
        try:
            adapter.wait_unless_forked(self.raw)
        except JAXLIB_ERRORS as error:
            raise translate_use(error, self._title()) from error

    def on_device_size_in_bytes(self) -> int:
        self._require_alive()
        try:
            return int(self.raw.on_device_size_in_bytes())
        except JAXLIB_ERRORS as error:
            raise translate_use(error, self._title()) from error

    def copy_to_device(self, device: Device) -> CpuBuffer:
        target = require_device(self._client, device)
        return self._copy(target.place)

    def copy_to_memory(self, memory: Memory) -> CpuBuffer:
        if not isinstance(memory, CpuMemory) or memory.client is not self._client:
            raise InvalidArgument(f"{memory!r} is not a memory of the client of {self!r}")
        return self._copy(memory.place)

    def unsafe_pointer(self) -> int:
        if is_sub_byte(self.type.dtype) or self.type.layout is not None:
            try:
                return adapter.address(self.raw)
            except JAXLIB_ERRORS as error:
                raise translate_use(error, self._title()) from error
        pointer: int = self.to_host().__array_interface__["data"][0]
        return pointer

    def to_dlpack(self, stream: int | None = None) -> Any:
        """Waits, then returns a capsule that shares the memory; a CPU has no streams.

        Raises `Unimplemented` for dtypes of less than a byte, which DLPack packs differently, and
        for layouts other than row-major.
        """
        if self.type.layout is not None:
            raise Unimplemented(f"DLPack of {self.type} is not implemented by plugrt-cpu")
        host = self.to_host()
        if is_sub_byte(self.type.dtype):
            raise Unimplemented(f"DLPack of {self.type.dtype} is not implemented by plugrt-cpu")
        return dlpack.export(host)

    def dlpack_device(self) -> tuple[int, int]:
        return (dlpack.CPU, 0)

    @property
    def _client(self) -> ClientBase:
        return self.place.devices[0].client

    def _copy(self, place: Place) -> CpuBuffer:
        self._require_alive()
        try:
            if (copied := _copy_large(self.raw, self.type, place)) is not None:
                return borrowing_buffer(copied, self.type, place)
            raw = adapter.copy(self.raw, place.raw_devices, place.sharding)
        except JAXLIB_ERRORS as error:
            raise translate_use(error, self._title()) from error
        return CpuBuffer(raw, self.type, place)

    def _require_alive(self) -> None:
        if self.is_deleted():
            raise DeletedBuffer(f"{self._title()} was deleted or donated")

    def _title(self) -> str:
        return f"the buffer {self.type} on {self.device!r}"

    def __repr__(self) -> str:
        return f"<buffer {self.type} on {self.device!r}>"


def borrowing_buffer(raw: Any, type: TensorType, place: Place) -> CpuBuffer:
    """Returns an array that may alias host memory until the array ends.

    jaxlib 0.10 keeps its reference to such memory until a later call collects it.
    """
    made = CpuBuffer(raw, type, place)
    # Workaround for jaxlib-host-memory
    made.swept = End(adapter.collect_garbage)
    return made


def gives_views(tensor_type: TensorType) -> bool:
    """Whether jaxlib returns a memoryview of arrays of this type: only if they are row-major."""
    row_major = tensor_type.layout is None
    return row_major and tensor_type.dtype in BUFFER_PROTOCOL_DTYPES and adapter.GIVES_MEMORYVIEWS


def read(raw: Any, tensor_type: TensorType) -> npt.NDArray[Any]:
    """Returns the contents of jaxlib's array on one device, like `CpuBuffer.to_host`."""
    dtype = tensor_type.dtype
    if tensor_type.is_token:
        raise InvalidArgument("a token orders effects and holds nothing")
    try:
        if gives_views(tensor_type):
            if collecting:
                stop_recording()
            if not raw.is_ready():  # wait before taking the lock
                adapter.wait_unless_forked(raw)
            with adapter.memory_lock:  # not acquire() and try: an interrupt may come between them
                return np.asarray(memoryview(raw))
        if is_sub_byte(dtype) or tensor_type.layout is not None:
            if collecting:
                stop_recording()
            adapter.wait_unless_forked(raw)
            array: npt.NDArray[Any]
            array, _ = raw._single_device_array_to_np_array_did_copy()
            array.flags.writeable = False
            return array
        adapter.wait_unless_forked(raw)
        capsule, keeper = adapter.to_dlpack(raw)
        return dlpack.view(capsule, keeper, tensor_type.shape, dtype)
    except JAXLIB_ERRORS as error:
        raise translate_use(error, f"an array {tensor_type}") from error


def _copy_large(raw: Any, tensor_type: TensorType, place: Place) -> Any | None:
    """Returns jaxlib's array of a copy that NumPy made, on this thread; None to let jaxlib copy.

    jaxlib copies to new memory of small pages, which is slower than the copy itself (see
    `LARGE_BYTES`). jaxlib's threads copy smaller arrays as fast, two parts at a time; and they can
    wait for contents that are not ready yet. A launch that donates the copy copies it again, like
    any array that was put.
    """
    dtype = tensor_type.dtype
    if tensor_type.nbytes < LARGE_BYTES:
        return None
    if tensor_type.layout is not None or is_sub_byte(dtype):
        return None  # jaxlib converts their contents at each read
    if not raw.is_ready() or not place.devices[0].is_addressable:
        return None
    try:
        contents = read(raw, tensor_type).reshape(-1).view(np.uint8)
    except PjrtError:
        # the computation of the array failed; jaxlib's copy reports that when it is read
        return None
    # Arrays that have ended free their memory during the put, not before: the C library returns
    # memory that stays free to the system, which would have to clear it again for each copy.
    host = copy_aligned(contents).view(dtype).reshape(tensor_type.shape)
    _, aval = array_type(tensor_type.shape, dtype)
    return adapter.put(host, aval, place.sharding, place.devices[0].raw, adapter.ZERO_COPY)
