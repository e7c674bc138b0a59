"""`Transfers`: copies host arrays to device buffers, and keeps the sources alive meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

from plugrt import interface
from plugrt.base.aligned_arrays import LARGE_BYTES, copy_aligned
from plugrt.base.bounded_cache import BoundedCache
from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.structs import Prepared, new_struct
from plugrt.capi.buffers.buffer import AliasedBuffer, Buffer
from plugrt.capi.buffers.buffer_spec import BufferSpec, tiled_layout
from plugrt.capi.buffers.native_transfers import ARGS, MADE, compile_put, is_known
from plugrt.capi.devices.devices import Device, Memory
from plugrt.capi.library.events import lend
from plugrt.capi.loading.function_table import Slot
from plugrt.errors import (
    FailedPrecondition,
    InvalidArgument,
    NotAnArray,
    PlugrtError,
    Unimplemented,
    UnsupportedDtype,
)
from plugrt.interface import HostBufferSemantics, Layout

if TYPE_CHECKING:
    from plugrt.capi.abi._abi import CData
    from plugrt.capi.library.client_handle import ClientHandle

_MAX_SPECS = 4096
_ONLY_DURING_CALL = HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
_MUTABLE = HostBufferSemantics.MUTABLE_ZERO_COPY
_MUTABLE_MINOR = 48
"""The minor version that added it."""
_from_buffer = ffi.from_buffer


class _PutArgs:
    """A free list of argument structs for one type and device."""

    __slots__ = ("_layout", "compiled", "free", "large", "spec")

    def __init__(self, spec: BufferSpec) -> None:
        self.spec = spec
        layout = spec.tensor_type.layout
        self._layout = tiled_layout([*reversed(layout.major_to_minor)]) if layout else None
        self.free: list[tuple[Prepared, CData]] = []
        self.large = (
            spec.nbytes >= LARGE_BYTES
            and spec.nbytes == spec.packed_nbytes
            and spec.memory is None
            and layout is None
        )
        """Whether NumPy may copy it, for a library that then uses the copy without another one."""
        self.compiled = None
        """The core's put of such arrays, or None."""
        if layout is None and spec.nbytes < LARGE_BYTES and is_known(spec.dtype):
            self.compiled = compile_put(spec, self.new_args()[0], False)

    def new_args(self) -> tuple[Prepared, CData]:
        """Returns (prepared, args): a struct complete but for the data and the semantics."""
        spec = self.spec
        prepared = Prepared(ARGS)
        (args,) = prepared.structs
        args.client = spec.handle.pointer
        args.type = spec.element_type
        args.dims = spec.dims
        args.num_dims = len(spec.shape)
        args.device = spec.device.pointer
        if spec.memory is not None:
            args.memory = spec.memory.pointer
        if self._layout is not None:
            args.device_layout, _ = self._layout
        prepared.fix()
        return prepared, args


class Transfers:
    """Puts arrays on the devices of one client; argument structs are prepared for each type."""

    def __init__(self, client: interface.Client, handle: ClientHandle) -> None:
        self._client = client
        self._handle = handle
        self._launch = handle.library.get_hot_slot("Client_BufferFromHostBuffer")
        self._event_destroy = handle.library.get_hot_slot("Event_Destroy")
        handle.launchers.keep(self, None)
        self._event_args: list[CData] = []
        self._puts: BoundedCache[object, _PutArgs] = BoundedCache(_MAX_SPECS)

    @property
    def _lent(self) -> HostBufferSemantics:
        """The semantics of a copy that was made only for the library: it may write to it, if it
        knows that mode.
        """
        known = self._handle.library.version[1] >= _MUTABLE_MINOR
        return _MUTABLE if known else HostBufferSemantics.IMMUTABLE_ZERO_COPY

    def refuse(self, stub: Slot) -> None:
        """Replaces the library's functions by ``stub``, which raises."""
        self._launch = self._event_destroy = stub

    def put(
        self,
        array: npt.NDArray[np.generic],
        device: interface.Device,
        memory: interface.Memory | None,
        semantics: int,
        layout: Layout | None = None,
    ) -> Buffer:
        """Returns a buffer with the contents of ``array`` (see `Client.buffer_from_host`).

        ``layout`` is not the default one, and has no tiles.
        """
        try:
            put = self._puts[array.shape, array.dtype, device, memory, layout]
        except (KeyError, AttributeError, TypeError):
            put = self._new(array, device, memory, layout)
        if put.compiled is not None and semantics is _ONLY_DURING_CALL:
            made: Buffer | None = put.compiled(array)
            if made is not None:
                return made
        if put.large and semantics == _ONLY_DURING_CALL and self._client.capabilities.zero_copy_put:
            return self._put_with_semantics(copy_aligned(array), put, self._lent)
        try:
            prepared, args = pair = put.free.pop()
        except IndexError:
            prepared, args = pair = put.new_args()
        prepared.restore()
        strided = False
        try:
            args.data = _from_buffer(array)
        except (ValueError, BufferError, TypeError):
            strided = True
        if strided or semantics is not _ONLY_DURING_CALL:
            return self._put_with_semantics(array, put, semantics)
        error = self._launch(args)
        if error:
            raise self._handle.library.error_of("Client_BufferFromHostBuffer", error)
        pointer, event = args.buffer, args.done_with_host_buffer
        if not (pointer and event):
            self._handle.library.check_handles(args, MADE)
        buffer = Buffer(pointer, put.spec)
        self._drop_event(event)
        put.free.append(pair)
        return buffer

    def _drop_event(self, event: object) -> None:
        """Destroys an event: with the default semantics the source was read during the call."""
        try:
            args = self._event_args.pop()
        except IndexError:
            args = new_struct("struct PJRT_Event_Destroy_Args")
        args.event = event
        error = self._event_destroy(args)
        if error:
            self._handle.library.log_failure("Event_Destroy", error)
        self._event_args.append(args)
        if self._handle.pending:
            self._handle.sweep()

    def _put_with_semantics(
        self, array: npt.NDArray[np.generic], put: _PutArgs, semantics: int
    ) -> Buffer:
        """Puts a strided array, or one whose memory the library may use after the call."""
        handle = self._handle
        _require_array(array)
        semantics = HostBufferSemantics(semantics)
        if semantics == _MUTABLE and not array.flags.writeable:
            raise InvalidArgument(
                "MUTABLE_ZERO_COPY lets the backend write to the array, but it is read-only"
            )
        if handle.library.version[1] < _MUTABLE_MINOR and semantics == _MUTABLE:
            raise Unimplemented(
                f"{handle.library.owner} lacks MUTABLE_ZERO_COPY, which came with version "
                f"0.{_MUTABLE_MINOR} of the PJRT C API"
            )
        _prepared, args = put.new_args()
        args.host_buffer_semantics = int(semantics)
        args.data = ffi.cast("void*", array.__array_interface__["data"][0])
        if not array.flags.c_contiguous:
            strides = ffi.new("int64_t[]", list(array.strides))
            args.byte_strides, args.num_byte_strides = strides, array.ndim
        error = self._launch(args)
        if error:
            raise handle.library.error_of("Client_BufferFromHostBuffer", error)
        with lend(array):
            handle.library.check_handles(args, MADE)
        event = args.done_with_host_buffer
        if semantics >= HostBufferSemantics.IMMUTABLE_ZERO_COPY and not handle.is_event_ready(
            event
        ):
            return AliasedBuffer(args.buffer, put.spec, event, array)
        buffer = Buffer(args.buffer, put.spec)
        if semantics == HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL:
            self._drop_event(event)
        else:
            handle.hold(iter(((event, array),)))
        return buffer

    def compile_put(
        self, shape: tuple[int, ...], dtype: np.dtype[np.generic], device: Device, number: bool
    ) -> object:
        """Returns the core's put of arrays (or, with ``number``, of Python's numbers) on a device.

        None if there is no core, and for puts that always need Python's `put`.
        """
        if not is_known(dtype):
            return None
        key = (shape, dtype, device, None, None)
        put = self._puts.get(key)
        if put is None:
            try:
                put = _PutArgs(BufferSpec(self._handle, shape, dtype, device))
            except UnsupportedDtype:  # `put` says so
                return None
            self._puts.keep(key, put)
        if put.compiled is None or not number:
            return put.compiled
        return compile_put(put.spec, put.new_args()[0], number)

    def _new(
        self,
        array: Any,
        device: interface.Device,
        memory: interface.Memory | None,
        layout: Layout | None,
    ) -> _PutArgs:
        _require_array(array)
        if not isinstance(device, Device) or device.client is not self._client:
            raise InvalidArgument(f"{device!r} is not a device of {self._client!r}")
        if memory is not None and not (
            isinstance(memory, Memory) and memory.client is self._client
        ):
            raise InvalidArgument(f"{memory!r} is not a memory of {self._client!r}")
        if layout is not None and layout.tiling:
            raise Unimplemented(
                f"{self._handle.library.owner}: plugrt cannot put an array in tiles; got the "
                f"layout {layout}"
            )
        put = _PutArgs(BufferSpec(self._handle, array.shape, array.dtype, device, memory, layout))
        self._puts.keep((array.shape, array.dtype, device, memory, layout), put)
        return put


def can_keep_layouts(transfers: Transfers | ClosedTransfers, device: interface.Device) -> bool:
    """Whether a put in another layout than the default keeps each element at its index.

    XLA's CPU client (xla-cpu-pjrt 0.0.1) gives the buffer the requested layout, but copies the
    bytes in host order: reading gives a different array.
    """
    # Workaround for xla-cpu-put-layout
    array = np.arange(6, dtype=np.int32).reshape(2, 3)
    turned = Layout((1, 0), ())
    try:
        buffer = transfers.put(array, device, None, _ONLY_DURING_CALL, turned)
        return turned.is_met_by(buffer.layout) and np.array_equal(buffer.to_host(), array)
    except PlugrtError:
        return False


def _require_array(array: object) -> None:
    if not isinstance(array, np.ndarray | np.generic):
        raise NotAnArray(f"a NumPy array was expected, not {array!r:.60}")


class ClosedTransfers:
    """Replaces the transfers of a closed client."""

    def __init__(self, name: str) -> None:
        self._name = name

    def compile_put(self, *_: object) -> None:
        """Returns None: there is nothing to put with."""

    def put(self, *_: object) -> NoReturn:
        """Raises `FailedPrecondition`."""
        raise FailedPrecondition(f"the client of {self._name!r} is closed")
