"""RawBuffer: the memory behind a buffer, without its type."""

from __future__ import annotations

from plugrt.capi.abi._abi import ffi
from plugrt.capi.buffers.buffer import Buffer
from plugrt.capi.devices.devices import Memory
from plugrt.capi.library.events import await_transfer, lend
from plugrt.errors import OutOfRange


class RawBuffer:
    """An alias of a buffer's memory; keeps the buffer alive."""

    def __init__(self, buffer: Buffer) -> None:
        self._buffer = buffer
        self._handle = buffer._spec.handle
        self._table = self._handle.library.extension("RawBuffer")
        args = self._table.call("RawBuffer_CreateRawAliasOfBuffer", buffer=buffer._live())
        self._pointer = self._table.own(
            "RawBuffer_Destroy", "buffer", args.raw_buffer, buffer, self._handle.exiting
        )

    def __len__(self) -> int:
        args = self._table.call("RawBuffer_GetOnDeviceSizeInBytes", buffer=self._pointer)
        return int(args.on_device_size_in_bytes)

    @property
    def memory(self) -> Memory:
        """The memory that contains it."""
        args = self._table.call("RawBuffer_GetMemorySpace", buffer=self._pointer)
        return self._buffer.device.client.memory_at(args.memory_space)

    @property
    def host_pointer(self) -> int:
        """Its address, 0 when the host cannot address it."""
        args = self._table.call("RawBuffer_GetHostPointer", buffer=self._pointer)
        return int(ffi.cast("uintptr_t", args.host_pointer))

    def _check(self, offset: int, size: int) -> None:
        if offset < 0 or size < 0 or offset + size > len(self):
            raise OutOfRange(f"{size} bytes at offset {offset} are not within {len(self)} bytes")

    def read(self, offset: int, size: int) -> bytes:
        """Returns bytes of the memory; waits for them."""
        self._check(offset, size)
        out = ffi.new("char[]", max(size, 1))
        with lend(out):
            args = self._table.call(
                "RawBuffer_CopyRawDeviceToHost",
                buffer=self._pointer,
                dst=out,
                offset=offset,
                transfer_size=size,
            )
        await_transfer(self._handle, args.event, out)
        return bytes(ffi.buffer(out, size))

    def write(self, offset: int, content: bytes) -> None:
        """Writes bytes to the memory; waits until they are there."""
        self._check(offset, len(content))
        view = ffi.from_buffer(content)
        with lend(view):
            args = self._table.call(
                "RawBuffer_CopyRawHostToDevice",
                buffer=self._pointer,
                src=view,
                offset=offset,
                transfer_size=len(content),
            )
        await_transfer(self._handle, args.event, view)
