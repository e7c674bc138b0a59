"""`BufferSpec`: all that is known of a buffer before it exists, made once and shared."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from plugrt.capi._abi import ffi
from plugrt.capi.devices import Device, Memory
from plugrt.capi.dtypes import type_of
from plugrt.capi.handle import ClientHandle
from plugrt.capi.library import new_struct
from plugrt.interface import TensorType


class BufferSpec:
    """Type, device and memory of buffers, with the C structs that describe them.

    ``memory`` None is the device's default memory.
    """

    __slots__ = (
        "_keep", "device", "dims", "dtype", "element_type", "home", "layout", "memory", "nbytes",
        "shape", "tensor_type",
    )  # fmt: skip

    def __init__(
        self,
        home: ClientHandle,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        device: Device,
        memory: Memory | None = None,
    ) -> None:
        self.home = home
        self.shape = shape
        self.dtype = dtype
        self.device = device
        self.memory = memory
        self.tensor_type = TensorType(shape, dtype)
        self.nbytes = math.prod(shape) * dtype.itemsize
        self.element_type = type_of(dtype)
        self.dims = ffi.new("int64_t[]", list(shape))
        self.layout, self._keep = row_major(len(shape))


def row_major(rank: int) -> tuple[Any, Any]:
    """Returns (``PJRT_Buffer_MemoryLayout*``, what must stay alive) of C order."""
    order = ffi.new("int64_t[]", list(range(rank - 1, -1, -1)))
    layout = new_struct("PJRT_Buffer_MemoryLayout")
    layout.type = 0
    layout.tiled.struct_size = ffi.sizeof("PJRT_Buffer_MemoryLayout_Tiled")
    layout.tiled.minor_to_major = order
    layout.tiled.minor_to_major_size = rank
    return layout, order
