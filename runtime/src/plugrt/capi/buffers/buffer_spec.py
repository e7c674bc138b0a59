"""`BufferSpec`: a buffer's type, device, memory and layout, shared by equal buffers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.element_types import dtype_to_element_type, element_bits
from plugrt.capi.abi.structs import new_struct, struct_type
from plugrt.capi.devices.devices import Device, Memory
from plugrt.capi.library.client_handle import ClientHandle
from plugrt.errors import InvalidArgument
from plugrt.interface import Layout, TensorType

if TYPE_CHECKING:
    from plugrt.capi.abi._abi import CData


class BufferSpec:
    """Type, device and memory of buffers, with the C structs that describe them.

    ``memory`` None is the device's default memory, ``layout`` None its default layout.
    """

    __slots__ = (
        "_keep", "axes", "device", "dims", "direct", "dtype", "element_type", "handle",
        "layout", "memory", "nbytes", "packed_nbytes", "raw", "reader", "shape", "signature",
        "stored_shape", "tensor_type",
    )  # fmt: skip

    def __init__(
        self,
        handle: ClientHandle,
        shape: tuple[int, ...],
        dtype: np.dtype[np.generic],
        device: Device,
        memory: Memory | None = None,
        layout: Layout | None = None,
    ) -> None:
        self.handle = handle
        self.shape = shape
        self.dtype = dtype
        self.device = device
        self.memory = memory
        usual = memory is None or memory is device.default_memory_or_none
        self.signature = device.client.intern_signature(
            (shape, dtype, device, None if usual else memory, layout)
        )
        """Type and place; equal specs share one object."""
        self.tensor_type = TensorType(shape, dtype, layout)
        self.nbytes = math.prod(shape) * dtype.itemsize
        self.element_type = dtype_to_element_type(dtype, handle.library.version[1])
        self.packed_nbytes = -(-math.prod(shape) * element_bits(dtype) // 8)
        """The least size on a device, which may pack elements of less than a byte."""
        self.dims = ffi.new("int64_t[]", list(shape))
        self.direct: bool | None = None
        """Whether the host can read such a buffer's memory directly; None until the first read."""
        self.raw = False
        """Whether the bytes in the device's memory are the array's, as the first read found."""
        self.reader: Any = None
        """Reads such a buffer in the compiled core, where the first read found that it can."""
        self.stored_shape = shape
        self.axes: tuple[int, ...] | None = None
        """How to transpose an array read as ``stored_shape``; None: not at all."""
        self.layout, self._keep = row_major(len(shape))

    def on(self, device: Device, memory: Memory | None = None) -> BufferSpec:
        """Returns the spec of copies of such buffers on a device, in the default layout."""
        kept, key = device.client.copy_specs, (self.shape, self.dtype, device, memory)
        if kept is None:
            return BufferSpec(self.handle, *key)
        found: BufferSpec = kept.get_or_make(key, lambda: BufferSpec(self.handle, *key))
        return found

    def key(self) -> tuple[object, ...]:
        """Returns the facts that decide how a library reads and copies such buffers."""
        return self.dtype, self.tensor_type.layout, getattr(self.memory, "kind", "")

    def read_in(self, minor_to_major: tuple[int, ...]) -> None:
        """Sets the dimension order in which buffers are read before the transposition."""
        order = minor_to_major[::-1]
        if order == tuple(range(len(order))):
            return
        self.stored_shape = tuple(self.shape[i] for i in order)
        self.axes = tuple(order.index(i) for i in range(len(order)))
        self.layout, self._keep = tiled_layout(list(minor_to_major))


def row_major(rank: int) -> tuple[CData, CData]:
    """Returns (``PJRT_Buffer_MemoryLayout*``, objects to keep alive) of C order."""
    return tiled_layout(list(range(rank - 1, -1, -1)))


def tiled_layout(minor_to_major: list[int]) -> tuple[CData, CData]:
    """Returns (``PJRT_Buffer_MemoryLayout*``, objects to keep alive) of an order of dimensions."""
    order = ffi.new("int64_t[]", minor_to_major)
    layout = new_struct("PJRT_Buffer_MemoryLayout")
    layout.type = 0
    _, layout.tiled.struct_size = struct_type("PJRT_Buffer_MemoryLayout_Tiled")
    layout.tiled.minor_to_major = order
    layout.tiled.minor_to_major_size = len(minor_to_major)
    return layout, order


def make_layout(shape: tuple[int, ...], strides: tuple[int, ...] | None) -> tuple[CData, CData]:
    """Returns the layout of a dense array with these strides in elements (None: C order).

    Raises `InvalidArgument` when the elements do not fill their memory without gaps.
    """
    order = list(range(len(shape) - 1, -1, -1))
    if strides is not None:
        order.sort(key=lambda i: (strides[i], shape[i]))
        expected = 1
        for i in order:
            if shape[i] > 1 and strides[i] != expected:
                raise InvalidArgument(
                    f"an array of shape {shape} with strides {strides} has gaps in its memory or "
                    "overlaps; make a contiguous copy first"
                )
            expected *= max(shape[i], 1)
    return tiled_layout(order)
