"""`AsyncTransfer`: buffers that are created first and filled from the host in pieces."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from plugrt.capi.abi import c_values
from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.element_types import dtype_to_element_type
from plugrt.capi.abi.structs import struct_type
from plugrt.capi.buffers.buffer import Buffer
from plugrt.capi.buffers.buffer_spec import BufferSpec
from plugrt.capi.devices.devices import Memory
from plugrt.capi.library.events import lend
from plugrt.errors import InvalidArgument, OutOfRange, PjrtError
from plugrt.interface import OptionValue, TensorType

if TYPE_CHECKING:
    from plugrt.capi.abi._abi import CData
    from plugrt.capi.client.client import Client


class AsyncTransfer:
    """A ``PJRT_AsyncHostToDeviceTransferManager`` (PJRT 0.62 and later).

    Create it, `retrieve` the buffers (ready once their data have arrived), and `send` the data,
    from any thread.
    """

    def __init__(self, client: Client, types: Sequence[TensorType], memory: Memory) -> None:
        handle = client.handle()
        if memory.client is not client:
            raise InvalidArgument(f"{memory!r} belongs to another client than {client!r}")
        self._handle = handle
        self.types = tuple(types)
        specs = ffi.new("PJRT_ShapeSpec[]", len(self.types))
        keep = []
        for spec, t in zip(specs, self.types, strict=True):
            dims = ffi.new("int64_t[]", list(t.shape))
            keep.append(dims)
            _, spec.struct_size = struct_type("PJRT_ShapeSpec")
            spec.dims, spec.num_dims = dims, len(t.shape)
            spec.element_type = dtype_to_element_type(t.dtype, handle.library.version[1])
        args = handle.library.call(
            "Client_CreateBuffersForAsyncHostToDevice",
            client=handle.pointer,
            shape_specs=specs,
            num_shape_specs=len(self.types),
            memory=memory.pointer,
        )
        self._pointer = handle.own(
            "AsyncHostToDeviceTransferManager_Destroy", "transfer_manager", args.transfer_manager
        )
        args = self._call("Device")
        self.device = client.device_at(args.device_out, args)
        """The device that the buffers are on."""
        self._specs = [
            BufferSpec(handle, t.shape, t.dtype, self.device, memory) for t in self.types
        ]

    def _call(self, what: str, **inputs: object) -> CData:
        name = f"AsyncHostToDeviceTransferManager_{what}"
        return self._handle.library.call(name, transfer_manager=self._pointer, **inputs)

    def _check(self, index: int) -> None:
        if not 0 <= index < len(self.types):
            raise OutOfRange(f"there is no buffer {index}; the transfer has {len(self.types)}")

    def __len__(self) -> int:
        args = self._call("BufferCount")
        if args.buffer_count != len(self.types):
            what = f"it has {args.buffer_count} buffers; {len(self.types)} were requested"
            raise self._handle.library.invalid(args, what)
        return len(self.types)

    def buffer_size(self, index: int) -> int:
        """The size of a buffer on the device in bytes."""
        self._check(index)
        return int(self._call("BufferSize", buffer_index=index).buffer_size)

    def retrieve(self, index: int) -> Buffer:
        """Returns a buffer, which is ready once all its data were sent. Once for each index."""
        self._check(index)
        return Buffer(
            self._call("RetrieveBuffer", buffer_index=index).buffer_out, self._specs[index]
        )

    def send(self, index: int, data: object, offset: int = 0, *, last: bool = True) -> None:
        """Sends contiguous bytes to ``offset`` of a buffer; ``last`` marks the buffer's last piece.

        ``data`` is kept alive until the library has read it.
        """
        self._check(index)
        content = np.ascontiguousarray(data) if isinstance(data, np.ndarray) else data
        view = ffi.from_buffer(content)
        size = ffi.sizeof(view)
        whole = self.buffer_size(index)
        if offset < 0 or offset + size > whole:
            raise OutOfRange(
                f"{size} bytes at offset {offset} do not fit buffer {index}, to which "
                f"{self._handle.library.owner} gives {whole} bytes"
            )
        with lend(view):
            args = self._call(
                "TransferData",
                buffer_index=index,
                data=view,
                offset=offset,
                transfer_size=size,
                is_last_transfer=last,
            )
        self._handle.hold(iter(((args.done_with_h2d_transfer, view),)))

    def send_literal(self, index: int, array: np.ndarray[Any, Any]) -> None:
        """Sends a whole array, for which the library may choose the layout (PJRT 0.83)."""
        self._check(index)
        spec = self._specs[index]
        if (array.shape, array.dtype) != (spec.shape, spec.dtype):
            raise InvalidArgument(
                f"buffer {index} is {spec.tensor_type}, the array "
                f"{TensorType(array.shape, array.dtype)}"
            )
        view = np.ascontiguousarray(array)
        with lend(view):
            args = self._call(
                "TransferLiteral",
                buffer_index=index,
                data=ffi.cast("void*", view.ctypes.data),
                shape_dims=spec.dims,
                shape_num_dims=len(spec.shape),
                shape_element_type=spec.element_type,
                shape_layout=spec.layout,
            )
        self._handle.hold(iter(((args.done_with_h2d_transfer, view),)))

    def fail(self, index: int, error: PjrtError) -> None:
        """Makes a buffer fail with an error instead of receiving data."""
        self._check(index)
        message, size = c_values.chars(error.message)
        self._call(
            "SetBufferError",
            buffer_index=index,
            error_code=error.code,
            error_message=message,
            error_message_size=size,
        )

    def add_metadata(self, metadata: dict[str, OptionValue]) -> None:
        """Attaches metadata to the transfer, for the library's own tools."""
        array, count, _keep = c_values.named_values(metadata)
        self._call("AddMetadata", transfer_metadata=array, num_metadata=count)


def create_uninitialized(client: Client, tensor_type: TensorType, memory: Memory) -> Buffer:
    """Returns a buffer whose contents are whatever the memory held (PJRT 0.69 and later)."""
    handle = client.handle()
    if math.prod(tensor_type.shape) < 0:
        raise InvalidArgument(f"{tensor_type} has a negative dimension")
    device = memory.first_device()
    spec = BufferSpec(handle, tensor_type.shape, tensor_type.dtype, device, memory)
    args = handle.library.call(
        "Client_CreateUninitializedBuffer",
        client=handle.pointer,
        shape_dims=spec.dims,
        shape_num_dims=len(spec.shape),
        shape_element_type=spec.element_type,
        shape_layout=spec.layout,
        device=device.pointer,
        memory=memory.pointer,
    )
    return Buffer(args.buffer, spec)


def create_error_buffer(
    client: Client, tensor_type: TensorType, memory: Memory, error: PjrtError
) -> Buffer:
    """Returns a buffer that fails with ``error`` whenever it is used (PJRT 0.82 and later)."""
    handle = client.handle()
    spec = BufferSpec(handle, tensor_type.shape, tensor_type.dtype, memory.first_device(), memory)
    message, size = c_values.chars(error.message)
    args = handle.library.call(
        "Client_CreateErrorBuffer",
        client=handle.pointer,
        error_code=error.code,
        error_message=message,
        error_message_size=size,
        shape_dims=spec.dims,
        shape_num_dims=len(spec.shape),
        shape_element_type=spec.element_type,
        shape_layout=spec.layout,
        memory=memory.pointer,
    )
    return Buffer(args.buffer, spec)
