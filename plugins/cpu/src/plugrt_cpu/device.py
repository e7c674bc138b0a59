"""`CpuDevice` and `CpuMemory`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plugrt.interface import Device, Memory

from plugrt_cpu import adapter

if TYPE_CHECKING:
    from plugrt_cpu.client import CpuClient


class CpuMemory(Memory):
    """A memory of a CPU device; all of them are the machine's main memory."""

    __slots__ = ("_client", "_device", "_id", "_kind", "place", "raw")

    def __init__(self, client: CpuClient, device: CpuDevice, raw: Any, memory_id: int) -> None:
        self._client = client
        self._device = device
        self._id = memory_id
        self._kind: str = raw.kind
        self.raw = raw
        self.place = Place((device,), self)

    @property
    def id(self) -> int:
        return self._id

    @property
    def kind(self) -> str:
        return self._kind

    @property
    def client(self) -> CpuClient:
        return self._client

    def addressable_by_devices(self) -> Sequence[CpuDevice]:
        return (self._device,)


class CpuDevice(Device):
    """One of the client's virtual devices; they share the cores of the machine."""

    __slots__ = ("_client", "_default", "_id", "_kind", "_memories", "_process_index", "raw")

    def __init__(self, client: CpuClient, raw: Any, memory_ids: Sequence[int] = ()) -> None:
        self._client = client
        self._id: int = raw.id
        self._kind: str = raw.device_kind
        self._process_index: int = raw.process_index
        self.raw = raw
        kinds = raw.addressable_memories()
        self._memories = tuple(
            CpuMemory(client, self, m, i) for m, i in zip(kinds, memory_ids, strict=True)
        )
        default = raw.default_memory().kind
        self._default = next(m for m in self._memories if m.kind == default)

    @property
    def id(self) -> int:
        return self._id

    @property
    def client(self) -> CpuClient:
        return self._client

    @property
    def kind(self) -> str:
        return self._kind

    @property
    def process_index(self) -> int:
        return self._process_index

    def memories(self) -> Sequence[CpuMemory]:
        return self._memories

    def default_memory(self) -> CpuMemory:
        return self._default


class Place:
    """Where an array lives: devices in order, a kind of memory, and jaxlib's sharding for them."""

    __slots__ = ("devices", "memory", "sharding")

    def __init__(self, devices: tuple[CpuDevice, ...], memory: CpuMemory) -> None:
        self.devices = devices
        self.memory = memory
        self.sharding = adapter.sharding([d.raw for d in devices], memory.kind)
