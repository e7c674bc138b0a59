"""`RemoteDevice` and `RemoteMemory`: devices of a server and their memories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from plugrt.errors import InvalidArgument
from plugrt.interface import Client, Device, Memory, OptionValue
from plugrt_remote import wire
from plugrt_remote.connection import Connection
from plugrt_remote.wire import Op


class ConnectedClient(Client):
    """A client with a connection to a server, and the devices that the server stated."""

    connection: Connection
    _devices: Sequence[RemoteDevice]
    _memories: frozenset[RemoteMemory]

    def devices(self) -> Sequence[RemoteDevice]:
        return self._devices

    def require_device(self, device: Device) -> RemoteDevice:
        """Returns the device if it is one of this client; raises `InvalidArgument` otherwise."""
        if isinstance(device, RemoteDevice) and device.client is self:
            return device
        raise InvalidArgument(f"{device!r:.60} is not a device of {self.backend_name}")

    def require_memory(self, memory: Memory) -> RemoteMemory:
        """Returns the memory if it is one of this client; raises `InvalidArgument` otherwise."""
        if isinstance(memory, RemoteMemory) and memory in self._memories:
            return memory
        raise InvalidArgument(f"{memory!r:.60} is not a memory of {self.backend_name}")


class RemoteMemory(Memory):
    """A memory of the server's devices."""

    __slots__ = ("client", "devices", "id", "kind")

    client: ConnectedClient
    id: int
    kind: str

    def __init__(self, client: ConnectedClient, id: int, kind: str) -> None:
        self.client, self.id, self.kind = client, id, kind
        self.devices: list[RemoteDevice] = []

    def addressable_by_devices(self) -> Sequence[RemoteDevice]:
        return self.devices


class RemoteDevice(Device):
    """A device of the server, with the facts that the server stated of it."""

    __slots__ = ("_default", "_memories", "attributes", "client", "id", "kind", "local_hardware_id")

    attributes: Mapping[str, OptionValue]
    client: ConnectedClient
    id: int
    kind: str
    local_hardware_id: int

    def __init__(
        self, client: ConnectedClient, facts: Mapping[str, Any], memories: dict[int, RemoteMemory]
    ) -> None:
        self.client, self.id, self.kind = client, int(facts["id"]), str(facts["kind"])
        self.local_hardware_id = int(facts["local_hardware_id"])
        self.attributes = facts["attributes"]
        self._memories = [
            memories.setdefault(id, RemoteMemory(client, id, kind))
            for id, kind in facts["memories"]
        ]
        for memory in self._memories:
            memory.devices.append(self)
        self._default = memories[facts["default_memory"]]

    def memories(self) -> Sequence[RemoteMemory]:
        return self._memories

    def default_memory(self) -> RemoteMemory:
        return self._default

    def memory(self, kind: str) -> RemoteMemory:
        found = super().memory(kind)
        assert isinstance(found, RemoteMemory)
        return found

    def memory_stats(self) -> Mapping[str, int]:
        if not self.client.capabilities.memory_stats:
            self._unimplemented("memory_stats")
        body = wire.STATS.pack(0, self.id)[wire.NUMBER.size :]
        stats: Mapping[str, int] = self.client.connection.ask(Op.STATS, body).result
        return stats
