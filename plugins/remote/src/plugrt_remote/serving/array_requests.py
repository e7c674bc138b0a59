"""`ArrayRequests`: puts, joins, copies and deletes the arrays of a session."""

from __future__ import annotations

import mmap
import struct
import weakref
from collections.abc import Callable, Mapping, MutableMapping
from math import prod
from typing import Any

import numpy as np

from plugrt.errors import InvalidArgument
from plugrt.interface import Client, HostBufferSemantics, Memory
from plugrt_remote import wire
from plugrt_remote.serving.arrays import Failed, SessionArrays
from plugrt_remote.values import ProtocolError
from plugrt_remote.wire import Op, frame


class ArrayRequests:
    """Handles the messages on arrays, and answers none of them."""

    def __init__(
        self,
        client: Client,
        arrays: SessionArrays,
        segments: Mapping[int, mmap.mmap],
        send: Callable[[bytes], object],
        programs: MutableMapping[int, Any],
    ) -> None:
        self._client, self._arrays, self._segments = client, arrays, segments
        self._send, self._programs = send, programs
        self._devices = {device.id: device for device in client.addressable_devices()}
        self._memories = {
            memory.id: memory for d in self._devices.values() for memory in d.memories()
        }

    def _place(self, device: int, memory: int) -> tuple[Any, Memory | None]:
        if device not in self._devices or (memory >= 0 and memory not in self._memories):
            raise InvalidArgument(f"the server has no device {device}, or no memory {memory}")
        return self._devices[device], None if memory < 0 else self._memories[memory]

    def put(self, body: bytes, payload: Any) -> None:
        """Puts an array on a device; its contents came with the message or are in a segment."""
        number, device, memory, kind, rank, segment = wire.PUT.unpack_from(body)
        shape = struct.unpack(f"<{rank}q", body[wire.PUT.size :])
        if kind not in wire.DTYPES or min(shape, default=0) < 0:
            raise ProtocolError(f"no array has the dtype {kind} and the shape {shape}")
        dtype = wire.DTYPES[kind]
        size = prod(shape) * dtype.itemsize
        if segment:
            mapped = self._segments.get(segment)
            if mapped is None or size > len(mapped) or not size:
                raise ProtocolError(f"an array of {size} bytes is not in the segment {segment}")
            array = np.frombuffer(mapped, dtype, prod(shape)).reshape(shape)
        elif size != (0 if payload is None else len(payload)):
            raise ProtocolError(f"an array of {size} bytes came with other contents")
        else:
            array = np.empty(shape, dtype) if payload is None else payload.view(dtype)
            array = array.reshape(shape)
        zero_copy = self._client.capabilities.zero_copy_put
        semantics = HostBufferSemantics.IMMUTABLE_ZERO_COPY
        if segment and not zero_copy:
            semantics = HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL

        def put() -> Any:
            where, space = self._place(device, memory)
            buffer = self._client.buffer_from_host(array, where, space, semantics)
            return self._client.shards((buffer,))

        self._arrays.make(number, put, size)
        if segment:
            message = frame(Op.SEGMENT_FREE, wire.NUMBER.pack(segment))
            if zero_copy:  # once the backend has dropped the array
                weakref.finalize(array.base, self._send, message).atexit = False
            else:
                self._send(message)

    def join(self, body: bytes, _: Any) -> None:
        """Makes an array from parts of other arrays."""
        number, count = wire.JOIN.unpack_from(body)
        parts = struct.iter_unpack("<QI", body[wire.JOIN.size :])
        found = [*parts]
        if len(found) != count or not count:
            raise ProtocolError(f"an array of {count} parts came with {len(found)}")
        join = self._client.shards
        get = self._arrays.get
        self._arrays.make(number, lambda: join([get(n, index)[index] for n, index in found]))

    def copy(self, body: bytes, _: Any) -> None:
        """Copies a part of an array to a device or a memory."""
        number, source, index, device, memory = wire.COPY.unpack(body)

        def make() -> Any:
            where, space = self._place(device, memory)
            buffer = self._arrays.get(source, index)[index]
            made = buffer.copy_to_device(where) if space is None else buffer.copy_to_memory(space)
            return self._client.shards((made,))

        known = self._arrays.held.get(source)
        size = known[0].on_device_size_in_bytes() if known and type(known) is not Failed else 0
        self._arrays.make(number, make, size)

    def delete(self, body: bytes, _: Any) -> None:
        """Deletes arrays or a part of each; `DROPPED` removes arrays and programs by number."""
        [part] = wire.DELETE.unpack_from(body)
        for [number] in struct.iter_unpack("<Q", body[wire.DELETE.size :]):
            if part == wire.DROPPED:
                self._programs.pop(number, None)
            held = self._arrays.held.get(number) if part >= 0 else self._arrays.pop(number)
            if part == wire.DROPPED or held is None or type(held) is Failed:
                continue
            for buffer in held[part : part + 1] if part >= 0 else held:
                buffer.delete()
