"""`PuttingClient`: puts of host arrays, of one device and of several, and of DLPack capsules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from plugrt.base.aligned_arrays import LARGE_BYTES, copy_aligned
from plugrt.errors import InvalidArgument
from plugrt.frames.argument_errors import PYTHON_ERRORS, refuse_call, with_argument_errors
from plugrt.interface import Device, HostBufferSemantics, Layout, Memory, TensorType
from plugrt.interface.checks import check_parts, require_rank
from plugrt_cpu import adapter, dlpack
from plugrt_cpu.buffer import CpuBuffer, borrowing_buffer
from plugrt_cpu.device import ClientBase, CpuMemory, Place, require_device
from plugrt_cpu.errors import JAXLIB_ERRORS, translate
from plugrt_cpu.shards import CpuShards
from plugrt_cpu.types import (
    BUFFER_PROTOCOL_DTYPES,
    array_type,
    is_dtype,
    is_sub_byte,
    to_plain_array,
)

if TYPE_CHECKING:
    import numpy.typing as npt

_SEMANTICS = {
    HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL: adapter.ONLY_DURING_CALL,
    HostBufferSemantics.IMMUTABLE_UNTIL_TRANSFER_COMPLETES: adapter.UNTIL_TRANSFER_COMPLETES,
    HostBufferSemantics.IMMUTABLE_ZERO_COPY: adapter.ZERO_COPY,
    # jaxlib has no such mode; never writing to the memory is within what the caller allows.
    HostBufferSemantics.MUTABLE_ZERO_COPY: adapter.ZERO_COPY,
}


class PuttingClient(ClientBase):
    """The part of `plugrt_cpu.client.CpuClient` that puts arrays."""

    def buffer_from_host(
        self,
        array: npt.NDArray[Any],
        device: Device,
        memory: Memory | None = None,
        semantics: HostBufferSemantics = HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL,
        layout: Layout | None = None,
    ) -> CpuBuffer:
        """Puts an array; zero-copy semantics alias a row-major source at a multiple of 64 bytes.

        A big-endian source is converted, since devices are little-endian. jaxlib puts row-major
        arrays only: for another ``layout`` this is `Unimplemented`.
        """
        target = require_device(self, device)
        if memory is None:
            place = target.place
        elif isinstance(memory, CpuMemory) and memory.device is device:
            place = memory.place
        else:
            raise InvalidArgument(f"{memory!r} is not a memory of {device!r}")
        try:
            if layout is not None:
                self._require_row_major(layout, array)
            if type(semantics) is not HostBufferSemantics:
                semantics = HostBufferSemantics(semantics)
            how = _SEMANTICS[semantics]
            raw, tensor_type = self._put(array, place, target.raw, how)
        except PYTHON_ERRORS as error:
            refuse_call(
                self.buffer_from_host, error, array=array, semantics=semantics, layout=layout
            )
        borrows = how is adapter.ZERO_COPY or tensor_type.nbytes >= LARGE_BYTES
        return (borrowing_buffer if borrows else CpuBuffer)(raw, tensor_type, place)

    def _require_row_major(self, layout: Layout, array: npt.NDArray[Any]) -> None:
        require_rank(layout, np.shape(array))
        if not layout.is_row_major:
            self._unimplemented("a put in another layout than row-major")

    def shards_from_host(self, arrays: Sequence[npt.NDArray[Any]], device: Device) -> list[Any]:
        target = require_device(self, device)
        place, raw_device, copy = target.place, target.raw, adapter.ONLY_DURING_CALL
        try:
            return [self._put(array, place, raw_device, copy)[0] for array in arrays]
        except PYTHON_ERRORS as error:
            refuse_call(self.shards_from_host, error, arrays=arrays)

    def compile_function_copy(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], device: Device
    ) -> Callable[[Any], Any] | None:
        """Returns a function that copies jaxlib's arrays of one type to a device; None if large."""
        place = require_device(self, device).place
        if array_type(shape, dtype)[0].nbytes >= LARGE_BYTES:
            return None
        devices, sharding, copy = place.raw_devices, place.sharding, adapter.copy

        def copy_array(raw: Any) -> Any:
            if self._raw is None:
                self.require_open()
            try:
                return copy(raw, devices, sharding)
            except JAXLIB_ERRORS as error:
                raise translate(error) from error

        return copy_array

    def compile_function_put(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], device: Device
    ) -> Callable[[npt.NDArray[Any]], Any] | None:
        """Returns a function that puts arrays of one type for the compiled core as jaxlib's arrays.

        It raises TypeError for another array. Returns None for types that `_put` has to convert.
        """
        target = require_device(self, device)
        tensor_type, aval = array_type(shape, dtype)
        if tensor_type.nbytes >= LARGE_BYTES or is_sub_byte(dtype):
            return None
        sharding, raw_device, put = target.place.sharding, target.raw, adapter.put
        how = adapter.ONLY_DURING_CALL

        def put_array(array: npt.NDArray[Any]) -> Any:
            if array.dtype != dtype or array.shape != shape:
                raise TypeError("an array of another type")
            if self._raw is None:
                self.require_open()
            try:
                return put(array, aval, sharding, raw_device, how)
            except JAXLIB_ERRORS as error:
                raise translate(error) from error

        return put_array

    @with_argument_errors
    def buffers_from_host(
        self,
        arrays: Sequence[npt.NDArray[Any]],
        devices: Sequence[Device],
        memory_kind: str | None = None,
        semantics: HostBufferSemantics = HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL,
    ) -> CpuShards:
        """Puts the parts of an array as separate arrays of jaxlib, joined when needed.

        jaxlib 0.10 can put all of them as one array, in a fifth of the time for small ones. But
        reads and launches on one device after the other would have to split that array, which costs
        the time again, and imports JAX if it is installed (see `adapter.split`).
        """
        check_parts(arrays, devices)
        targets = tuple([require_device(self, device) for device in devices])
        memories = [
            d.default_memory() if memory_kind is None else d.memory(memory_kind) for d in targets
        ]
        how = _SEMANTICS[HostBufferSemantics(semantics)]
        whole = self.place(targets, memories[0].kind)
        made = [
            self._put(array, memory.place, memory.device.raw, how)
            for array, memory in zip(arrays, memories)  # noqa: B905  # hot
        ]
        parts, types = zip(*made, strict=True)
        if types.count(types[0]) != len(types):
            raise InvalidArgument(f"the parts of an array have types {[*map(str, types)]}")
        return CpuShards.from_parts(parts, types[0], whole)

    def _put(
        self, array: npt.NDArray[Any], place: Place, raw_device: Any, semantics: Any
    ) -> tuple[Any, TensorType]:
        """Returns jaxlib's array of a host array on one device, and its type.

        Large arrays are copied by NumPy, which is faster (see `LARGE_BYTES`), and jaxlib borrows
        the copy. jaxlib never writes to borrowed memory: a launch that donates it copies it, and
        leaves it to other users.
        """
        if type(array) is not np.ndarray or not is_dtype(array.dtype):
            array = to_plain_array(array)
        if self._raw is None:
            self.require_open()
        tensor_type, aval = array_type(array.shape, array.dtype)
        if (
            array.nbytes >= LARGE_BYTES
            and semantics is adapter.ONLY_DURING_CALL
            and not is_sub_byte(array.dtype)  # jaxlib packs these
        ):
            # frees the memory of arrays that have ended, before allocating more
            adapter.collect_garbage()
            array, semantics = copy_aligned(array), adapter.ZERO_COPY
        try:
            raw = adapter.put(array, aval, place.sharding, raw_device, semantics)
        except JAXLIB_ERRORS as error:
            raise translate(error) from error
        return raw, tensor_type

    @with_argument_errors
    def buffer_from_dlpack(
        self, capsule: Any, device: Device, stream: int | None = None
    ) -> CpuBuffer:
        """Owns a capsule of CPU memory from then on; copies memory not aligned to 64 bytes."""
        target = require_device(self, device)
        self.require_open()
        shape, dtype = dlpack.describe(capsule)
        if dtype in BUFFER_PROTOCOL_DTYPES:
            array = np.from_dlpack(dlpack.CapsuleHolder(capsule))
            return self.buffer_from_host(
                array, target, None, HostBufferSemantics.IMMUTABLE_ZERO_COPY
            )
        try:
            raw = adapter.from_dlpack(capsule, target.raw)
        except JAXLIB_ERRORS as error:
            raise translate(error) from error
        return CpuBuffer(raw, array_type(shape, dtype)[0], target.place)
