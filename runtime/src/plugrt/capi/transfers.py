"""`Transfers`: host arrays to device buffers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.capi._abi import ffi
from plugrt.capi.buffers import Buffer
from plugrt.capi.devices import Device, Memory
from plugrt.capi.handle import ClientHandle
from plugrt.capi.library import new_struct
from plugrt.capi.specs import BufferSpec
from plugrt.errors import InvalidArgument
from plugrt.interface import HostBufferSemantics

_MAX_SPECS = 4096
_from_buffer = ffi.from_buffer
_ONLY_DURING_CALL = HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL


class _Put:
    """The argument structs for one spec, in a free list."""

    __slots__ = ("free", "spec")

    def __init__(self, spec: BufferSpec) -> None:
        self.spec = spec
        self.free: list[Any] = []

    def new_args(self) -> Any:
        spec = self.spec
        args = new_struct("struct PJRT_Client_BufferFromHostBuffer_Args")
        args.client = spec.home.pointer
        args.type = spec.element_type
        args.dims = spec.dims
        args.num_dims = len(spec.shape)
        args.device = spec.device.pointer
        if spec.memory is not None:
            args.memory = spec.memory.pointer
        return args


class Transfers:
    """Puts arrays on the devices of one client; argument structs are prepared for each type."""

    def __init__(self, home: ClientHandle) -> None:
        self._home = home
        self._launch = home.library.slots["Client_BufferFromHostBuffer"]
        self._event_destroy = home.library.slots["Event_Destroy"]
        self._event_args: list[Any] = []
        self._puts: dict[Any, _Put] = {}

    def put(self, array: npt.NDArray[Any], device: Any, memory: Any, semantics: int) -> Buffer:
        try:
            put = self._puts[array.shape, array.dtype, device, memory]
        except KeyError:
            put = self._new(array, device, memory)
        try:
            args = put.free.pop()
        except IndexError:
            args = put.new_args()
        args.data = _from_buffer(array)
        error = self._launch(args)
        if error:
            raise self._home.library.take_error(error)
        buffer = Buffer(args.buffer, put.spec)
        self._home.release("Event_Destroy", "event", args.done_with_host_buffer)
        put.free.append(args)
        return buffer

    def _new(self, array: npt.NDArray[Any], device: Any, memory: Any) -> _Put:
        if len(self._puts) >= _MAX_SPECS:
            self._puts.clear()
        put = _Put(BufferSpec(self._home, array.shape, array.dtype, device, memory))
        self._puts[array.shape, array.dtype, device, memory] = put
        return put
