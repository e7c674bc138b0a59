"""A backend in a few lines of NumPy, and plugins that offer it: no jaxlib, no library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from plugrt.errors import DeletedBuffer
from plugrt.interface import (
    Buffer,
    Capabilities,
    Client,
    CompileOptions,
    Device,
    Event,
    HostBufferSemantics,
    LoadedExecutable,
    Memory,
    OptionValue,
    Program,
    ReadyEvent,
)
from plugrt.plugins import Availability, Plugin


class FakeMemory(Memory):
    def __init__(self, device: FakeDevice, kind: str = "device") -> None:
        self._device, self._kind = device, kind

    id = property(lambda self: self._device.id)
    kind = property(lambda self: self._kind)
    client = property(lambda self: self._device.client)

    def addressable_by_devices(self) -> Sequence[Device]:
        return [self._device]


class FakeDevice(Device):
    def __init__(self, client: FakeClient, device_id: int, process_index: int = 0) -> None:
        self._client, self._id, self._process = client, device_id, process_index
        self._memory, self._host_memory = FakeMemory(self), FakeMemory(self, "host")

    id = property(lambda self: self._id)
    client = property(lambda self: self._client)
    kind = property(lambda self: "fake")
    process_index = property(lambda self: self._process)

    def memories(self) -> Sequence[Memory]:
        return [self._memory, self._host_memory]

    def default_memory(self) -> Memory:
        return self._memory


class FakeBuffer(Buffer):
    def __init__(self, array: np.ndarray, device: Device) -> None:
        self._array: np.ndarray | None = array
        self._device = device

    shape = property(lambda self: self.to_host().shape)
    dtype = property(lambda self: self.to_host().dtype)
    device = property(lambda self: self._device)

    def to_host(self) -> np.ndarray:
        if self._array is None:
            raise DeletedBuffer("the buffer was deleted")
        return self._array

    def delete(self) -> None:
        self._array = None

    def is_deleted(self) -> bool:
        return self._array is None

    def ready_event(self) -> Event:
        return ReadyEvent()


class FakeClient(Client):
    """A client of ``count`` devices; ``closed`` counts the calls of `close`."""

    def __init__(self, platform: str = "fake", count: int = 1, processes: int = 1) -> None:
        self._platform = platform
        self._devices = [FakeDevice(self, i, i % processes) for i in range(count)]
        self.closed = 0

    platform = property(lambda self: self._platform)
    platform_version = property(lambda self: "fake 1")
    capabilities = property(lambda self: Capabilities())

    def devices(self) -> Sequence[Device]:
        return self._devices

    def compile(self, program: Program, options: CompileOptions) -> LoadedExecutable:
        self._unimplemented("compile")

    def buffer_from_host(
        self,
        array: np.ndarray,
        device: Device,
        memory: Memory | None = None,
        semantics: HostBufferSemantics = HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL,
    ) -> Buffer:
        return FakeBuffer(array.copy(), device)

    def close(self) -> None:
        self.closed += 1


class FakePlugin(Plugin):
    """Offers a `FakeClient`; ``error`` is raised instead of starting it."""

    def __init__(
        self,
        name: str = "fake",
        *,
        priority: int = 400,
        count: int = 1,
        error: BaseException | None = None,
        available: Availability | None = None,
        **attributes: Any,
    ) -> None:
        self.name, self.priority, self._count, self.error = name, priority, count, error
        self._available = available or Availability.yes()
        self.clients: list[FakeClient] = []
        self.options: list[Mapping[str, OptionValue]] = []
        for attribute, value in attributes.items():
            setattr(self, attribute, value)

    def probe(self) -> Availability:
        return self._available

    def create_client(
        self, options: Mapping[str, OptionValue], distributed: Any | None = None
    ) -> Client:
        self.options.append(options)
        if self.error is not None:
            raise self.error
        self.clients.append(FakeClient(self.name, self._count))
        return self.clients[-1]


class StartedPlugin(Plugin):
    """Offers a client that was started before."""

    def __init__(self, name: str, client: Client) -> None:
        self.name, self._client = name, client

    def create_client(
        self, options: Mapping[str, OptionValue], distributed: Any | None = None
    ) -> Client:
        return self._client
