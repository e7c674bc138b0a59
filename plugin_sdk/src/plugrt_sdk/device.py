"""`BackendDevice` and `BackendMemory`: the devices that a backend names."""

from __future__ import annotations

from collections.abc import Sequence

from plugrt.interface import Client, Device, Memory


class BackendMemory(Memory):
    """The one memory of a device."""

    __slots__ = ("_device",)

    def __init__(self, device: BackendDevice) -> None:
        self._device = device

    @property
    def id(self) -> int:
        return self._device.id

    @property
    def kind(self) -> str:
        return "device"

    @property
    def client(self) -> Client:
        return self._device.client

    def addressable_by_devices(self) -> Sequence[Device]:
        return [self._device]


class BackendDevice(Device):
    """A device that a backend named."""

    __slots__ = ("__weakref__", "_client", "_id", "_kind", "_memory")

    def __init__(self, client: Client, index: int, kind: str) -> None:
        self._client = client
        self._id = index
        self._kind = kind
        self._memory = BackendMemory(self)

    @property
    def id(self) -> int:
        return self._id

    @property
    def client(self) -> Client:
        return self._client

    @property
    def kind(self) -> str:
        return self._kind

    def memories(self) -> Sequence[Memory]:
        return [self._memory]

    def default_memory(self) -> Memory:
        return self._memory
