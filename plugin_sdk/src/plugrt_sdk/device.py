"""`BackendDevice` and `BackendMemory`: the devices that a backend names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plugrt.interface import Client, Device, DeviceDescription, Memory, OptionValue
from plugrt.native.finalizers import finish_pending
from plugrt_sdk.backend import Backend
from plugrt_sdk.returns import require_figures, wrong_return


class BackendMemory(Memory):
    """A memory of one device."""

    __slots__ = ("device", "id", "kind")

    device: BackendDevice
    """The device whose memory it is."""
    id: int
    kind: str

    def __init__(self, device: BackendDevice, index: int, kind: str) -> None:
        self.device = device
        self.id = index
        self.kind = kind

    @property
    def client(self) -> Client:
        return self.device.client

    def addressable_by_devices(self) -> Sequence[Device]:
        return [self.device]


class BackendDevice(Device):
    """A device that a backend named."""

    __slots__ = (
        "__weakref__", "_backend", "_memories", "attributes", "client", "description", "id", "kind",
        "process_index",
    )  # fmt: skip

    attributes: Mapping[str, OptionValue]
    client: Client
    description: DeviceDescription
    """The description that the backend's ``devices()`` returned."""
    id: int
    kind: str
    process_index: int

    def __init__(
        self,
        client: Client,
        backend: Backend,
        description: DeviceDescription,
        memories: Sequence[tuple[int, str]] = (),
    ) -> None:
        """``memories`` are the id and the kind of each, the default first; else there is one."""
        self.client = client
        self._backend = backend
        self.description = description
        self.id, self.kind = description.id, description.kind
        self.process_index, self.attributes = description.process_index, description.attributes
        named = memories or [(description.id, "device")]
        self._memories = [BackendMemory(self, number, kind) for number, kind in named]

    @property
    def backend_name(self) -> str:
        return self.client.backend_name

    def memories(self) -> Sequence[BackendMemory]:
        return self._memories

    def default_memory(self) -> BackendMemory:
        return self._memories[0]

    def memory(self, kind: str) -> BackendMemory:
        found = super().memory(kind)
        assert isinstance(found, BackendMemory)
        return found

    def memory_stats(self) -> Mapping[str, int]:
        finish_pending()
        backend = self._backend
        if not self.client.capabilities.memory_stats:
            self._unimplemented("memory_stats")
        found = require_figures(backend, "memory_stats", backend.memory_stats(self.id))
        if not all(isinstance(value, int) for value in found.values()) or (
            "bytes_in_use" not in found
        ):
            raise wrong_return(backend, "memory_stats", "whole numbers, bytes_in_use among them",
                               found)  # fmt: skip
        return found
