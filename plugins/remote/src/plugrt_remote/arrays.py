"""`RemoteShards` and `RemoteBuffer`: arrays on a server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from plugrt.errors import DeletedBuffer, InvalidArgument
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import Buffer, Device, Event, Memory, TensorType
from plugrt_remote import wire
from plugrt_remote.connection import Connection
from plugrt_remote.devices import RemoteDevice, RemoteMemory
from plugrt_remote.event import RemoteEvent
from plugrt_remote.wire import Op, frame

_SMALL = 1 << 16
"""Bytes above which the next message frees a dropped array; smaller ones are freed together."""
_LARGE = 1 << 30
"""A read of at least this many bytes waits for the computation before it allocates memory."""


class RemoteShards(Sequence[Buffer]):
    """An array on one or several devices of a server, freed there when this object is dropped."""

    __slots__ = (
        "__weakref__", "_gone", "_parts", "connection", "deleted", "devices", "event", "kind",
        "number", "type",
    )  # fmt: skip

    def __init__(
        self,
        connection: Connection,
        number: int,
        type: TensorType,
        devices: tuple[RemoteDevice, ...],
        kind: str | None,
        parts: tuple[RemoteBuffer, ...] = (),
    ) -> None:
        self.deleted = False
        self.connection, self.number, self.type = connection, number, type
        self.devices, self.kind = devices, kind
        self.event: RemoteEvent | None = None
        self._gone: set[int] | None = None
        self._parts = parts

    def __del__(self) -> None:
        if not self.deleted:
            self._drop()

    def _drop(self) -> None:
        """Adds the array to those to free: with the next message if it is large."""
        connection = self.connection
        connection.dead.append(self.number)
        if self.type.nbytes > _SMALL:
            connection.drops_now = True

    def __len__(self) -> int:
        return len(self.devices)

    @overload
    def __getitem__(self, index: int) -> RemoteBuffer: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[RemoteBuffer]: ...
    def __getitem__(self, index: int | slice) -> RemoteBuffer | Sequence[RemoteBuffer]:
        if isinstance(index, slice):
            return [*self][index]
        return RemoteBuffer(self, range(len(self.devices))[index])

    def __iter__(self) -> Iterator[RemoteBuffer]:
        return (RemoteBuffer(self, i) for i in range(len(self.devices)))

    def is_gone(self, index: int | None = None) -> bool:
        """Whether the part ``index``, or any if it is None, was deleted or donated."""
        if self.deleted:
            return True
        if self._parts:
            parts = self._parts if index is None else self._parts[index : index + 1]
            return any(part.is_deleted() for part in parts)
        return self._gone is not None and (index is None or index in self._gone)

    def require(self, index: int | None = None) -> int:
        """Returns the array's number; raises `DeletedBuffer` if the part or array is gone."""
        if self.deleted or ((self._gone is not None or self._parts) and self.is_gone(index)):
            raise DeletedBuffer(f"the array {self.type} was deleted or donated")
        return self.number

    def mark_donated(self) -> None:
        """Marks the array and its parts as donated to a launch."""
        if not self.deleted:
            self.deleted = True
            self._drop()
        for part in self._parts:
            part.shards.mark_donated()

    def delete(self, index: int | None = None) -> None:
        """Deletes the part ``index``, or all parts if it is None."""
        if self.is_gone(index) and (index is not None or self.deleted):
            return
        if self._parts:
            for part in self._parts if index is None else self._parts[index : index + 1]:
                part.delete()
        if index is not None and len(self.devices) > 1:
            self._gone = {*(self._gone or ()), index}
        if index is None or len(self._gone or ()) in (0, len(self.devices)):
            self.deleted, index = True, None
        if self.connection.lost is None and not (self._parts and index is not None):
            part_number = wire.ALL_PARTS if index is None else index
            body = wire.DELETE.pack(part_number) + wire.NUMBER.pack(self.number)
            self.connection.post(frame(Op.DELETE, body))

    def block_until_ready(self) -> None:
        """Waits for all parts; raises if computing them failed."""
        if self.event is not None:
            self.event.wait()
        else:
            self.wait_for(-1)

    def wait_for(self, index: int) -> None:
        """Waits for the part ``index``, or for all parts if it is -1."""
        number = self.require(None if index < 0 else index)
        request = self.connection.numbers()
        body = wire.WAIT.pack(request, number, index)[wire.NUMBER.size :]
        self.connection.ask(Op.WAIT, body, number=request)

    def ready_event(self) -> RemoteEvent:
        """Returns an event that is ready once all parts are."""
        if self.event is None:
            self.event = RemoteEvent(self.connection, self.require())
        return self.event

    def read(self, index: int) -> npt.NDArray[Any]:
        """Returns the contents of a part as a read-only array."""
        connection, type, number = self.connection, self.type, self.require(index)
        if type.is_token:
            raise InvalidArgument("a token has no contents to read")
        event = self.event
        if event is not None and event.contents is not None and event.contents[0] == number:
            return _as_array(event.contents[1], type)
        nbytes = type.nbytes
        if nbytes >= _LARGE:
            self.wait_for(index)
        pool = connection.segments
        segment = None if pool is None else pool.take(nbytes)
        if pool is None or segment is None:
            body = wire.READ.pack(0, number, index, 0)[wire.NUMBER.size :]
            return _as_array(connection.ask(Op.READ, body).payload, type)
        body = wire.READ.pack(0, number, index, segment[0])[wire.NUMBER.size :]
        connection.ask(Op.READ, body)
        flat = np.frombuffer(segment[1], type.dtype, nbytes // type.dtype.itemsize)
        pool.free_with(flat, segment)
        host = flat.reshape(type.shape)
        host.flags.writeable = False
        return host


def _as_array(payload: Any, type: TensorType) -> npt.NDArray[Any]:
    if payload is None:
        host = np.empty(type.shape, type.dtype)
    else:
        host = payload.view(type.dtype).reshape(type.shape)
    host.flags.writeable = False
    return host


class RemoteBuffer(Buffer):
    """A part of a `RemoteShards`."""

    __slots__ = ("index", "shards")

    def __init__(self, shards: RemoteShards, index: int) -> None:
        self.shards, self.index = shards, index

    @property
    def backend_name(self) -> str:
        return self.device.client.backend_name

    @property
    def shape(self) -> tuple[int, ...]:
        return self.shards.type.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.shards.type.dtype

    @property
    def device(self) -> RemoteDevice:
        return self.shards.devices[self.index]

    @property
    def memory(self) -> RemoteMemory:
        kind = self.shards.kind
        return self.device.default_memory() if kind is None else self.device.memory(kind)

    def to_host(self) -> npt.NDArray[Any]:
        return self.shards.read(self.index)

    def delete(self) -> None:
        self.shards.delete(self.index)

    def is_deleted(self) -> bool:
        return self.shards.is_gone(self.index)

    def ready_event(self) -> Event:
        return self.shards.ready_event()

    def block_until_ready(self) -> None:
        self.shards.block_until_ready()

    def on_device_size_in_bytes(self) -> int:
        self.shards.require(self.index)
        return self.shards.type.nbytes

    @with_argument_errors
    def copy_to_device(self, device: Device) -> Buffer:
        ours = self.device.client.require_device(device)
        return self._copy(ours, ours.default_memory())

    @with_argument_errors
    def copy_to_memory(self, memory: Memory) -> Buffer:
        ours = self.device.client.require_memory(memory)
        devices = ours.addressable_by_devices()
        return self._copy(self.device if self.device in devices else devices[0], ours)

    def _copy(self, device: RemoteDevice, memory: RemoteMemory) -> Buffer:
        connection, number = self.shards.connection, self.shards.require(self.index)
        new = connection.numbers()
        kind = None if memory is device.default_memory() else memory.kind
        made = RemoteShards(connection, new, self.shards.type, (device,), kind)
        where = -1 if kind is None else memory.id
        connection.post(frame(Op.COPY, wire.COPY.pack(new, number, self.index, device.id, where)))
        return RemoteBuffer(made, 0)
