"""`CpuDevice`, `CpuMemory`, and `Place`: the devices of an array, with jaxlib's sharding.

`ClientBase` has the members of the client that its devices, buffers and programs use.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from plugrt.errors import FailedPrecondition, InvalidArgument
from plugrt.interface import Client, Device, Memory, OptionValue
from plugrt.lifetime.forks import FORKED
from plugrt_cpu import adapter

if TYPE_CHECKING:
    from plugrt.interface import Handler


class Place:
    """Devices in order, the memory kind on each, and jaxlib's sharding for them.

    ``devices`` belong to this process; the sharding and ``raw_devices`` (jaxlib's list) also name
    devices of other processes. ``single`` is whether there is only one, and ``shared`` whether some
    belong to other processes.
    """

    __slots__ = ("devices", "memory_kind", "raw_devices", "sharding", "shared", "single")

    def __init__(self, devices: tuple[CpuDevice, ...], memory_kind: str) -> None:
        self.devices = tuple(d for d in devices if d.is_addressable)
        self.memory_kind = memory_kind
        self.single = len(devices) == 1
        self.shared = len(self.devices) < len(devices)
        self.sharding = adapter.sharding([d.raw for d in devices], memory_kind)
        self.raw_devices = adapter.device_list([d.raw for d in devices])


class CpuMemory(Memory):
    """A memory of a CPU device. All kinds are the machine's main memory, allocated alike."""

    __slots__ = ("client", "device", "id", "kind", "place")

    client: ClientBase
    id: int
    kind: str

    def __init__(self, device: CpuDevice, kind: str, memory_id: int) -> None:
        self.client = device.client
        self.device = device
        """The device of this memory."""
        self.id = memory_id
        self.kind = kind
        self.place = Place((device,), kind)

    def addressable_by_devices(self) -> Sequence[CpuDevice]:
        return (self.device,)


class CpuDevice(Device):
    """One of the client's virtual devices; they share the cores of the machine."""

    __slots__ = (
        "_default", "_memories", "client", "id", "is_addressable", "place", "process_index", "raw"
    )  # fmt: skip

    client: ClientBase
    id: int
    is_addressable: bool
    process_index: int

    def __init__(self, client: ClientBase, raw: Any, first_memory_id: int) -> None:
        self.raw = raw
        self.client = client
        self.id = int(raw.id)
        self.process_index = int(raw.process_index)
        self.is_addressable = self.process_index == client.process_index
        kinds = [memory.kind for memory in raw.addressable_memories()]
        self._memories = tuple(
            CpuMemory(self, kind, first_memory_id + i) for i, kind in enumerate(kinds)
        )
        self._default = self._memories[kinds.index(raw.default_memory().kind)]
        self.place = self._default.place

    @property
    def kind(self) -> str:
        return str(self.raw.device_kind)

    @property
    def local_hardware_id(self) -> int:
        return int(self.raw.local_hardware_id)

    @property
    def attributes(self) -> Mapping[str, OptionValue]:
        return {}

    def memories(self) -> Sequence[CpuMemory]:
        return self._memories

    def memory(self, kind: str) -> CpuMemory:
        if type(kind) is str and kind == self._default.place.memory_kind:
            return self._default
        here = self._memories if isinstance(kind, str) else ()
        found = next((m for m in here if m.kind == kind), None)
        if found is None:
            super().memory(kind)  # raises an error with the names of all memories
            raise AssertionError("unreachable")
        return found

    def default_memory(self) -> CpuMemory:
        return self._default


def require_device(client: Client, device: Device) -> CpuDevice:
    """Returns the device if it belongs to the client; raises `InvalidArgument` otherwise."""
    if isinstance(device, CpuDevice) and device.client is client:
        return device
    raise InvalidArgument(f"{device!r} is not a device of this client; {client.devices()} are")


class ClientBase(Client):
    """The members of a client that its devices, buffers and programs use."""

    by_id: dict[int, CpuDevice]
    """The devices of all processes."""
    callback_handler: Handler | None = None
    """Calls the Python functions of another host that the client was exported to."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self.is_forked = False
        """Whether this process was forked from the one that started the client."""
        self._places: dict[tuple[tuple[CpuDevice, ...], str], Place] = {}
        self.launch_lock = threading.RLock()  # a finaliser may delete an array meanwhile
        """Serializes argument checks and launches of multi-device programs."""

    def require_open(self) -> Any:
        """Returns jaxlib's client; raises `FailedPrecondition` after `close`, or after a fork."""
        if self._raw is None and self.is_forked:
            raise FailedPrecondition(f"this cpu client {FORKED}")
        if self._raw is None:
            raise FailedPrecondition(
                "this cpu client is closed (plugrt.clear_backends() closes clients): arrays and "
                "programs of it that are not in host memory are lost; create them again"
            )
        return self._raw

    def place(self, devices: tuple[CpuDevice, ...], memory_kind: str | None = None) -> Place:
        """Returns the place of these devices and that memory kind, the same object each time."""
        default = devices[0].place
        if memory_kind is None:
            memory_kind = default.memory_kind
        if len(devices) == 1:
            same = memory_kind == default.memory_kind
            return default if same else devices[0].memory(memory_kind).place
        found = self._places.get((devices, memory_kind))
        if found is None:
            found = self._places.setdefault((devices, memory_kind), Place(devices, memory_kind))
        return found
