"""`Device`: one device of a client."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from plugrt.errors import InvalidArgument
from plugrt.interface.backend_object import OF_DEVICES, BackendObject, find_attribute
from plugrt.interface.memory import Memory
from plugrt.interface.promises import OptionValue

if TYPE_CHECKING:
    from plugrt.interface.client import Client


class Device(BackendObject, ABC):
    """One device of a client, which has one object for each: devices compare by identity."""

    __slots__ = ()

    @property
    @abstractmethod
    def id(self) -> int:
        """Unique among all devices of the client, across processes."""

    @property
    @abstractmethod
    def client(self) -> Client:
        """The client that it belongs to."""

    @property
    @abstractmethod
    def kind(self) -> str:
        """The vendor's name for this kind of device, such as ``NVIDIA H100``."""

    @property
    def platform(self) -> str:
        """The platform of the client, such as ``cpu``."""
        return self.client.platform

    @property
    def process_index(self) -> int:
        """The process that the device belongs to."""
        return 0

    @property
    def local_hardware_id(self) -> int:
        """The index of the device on its own machine."""
        return self.id

    @property
    def is_addressable(self) -> bool:
        """Whether this process can put, get and execute there."""
        return self.process_index == self.client.process_index

    @property
    def attributes(self) -> Mapping[str, OptionValue]:
        """Facts that the backend states of the device, such as ``coords``."""
        return {}

    @abstractmethod
    def memories(self) -> Sequence[Memory]:
        """The memories that the device can address."""

    @abstractmethod
    def default_memory(self) -> Memory:
        """The memory that holds buffers unless another is named."""

    def memory(self, kind: str) -> Memory:
        """Returns the device's memory of that kind; `InvalidArgument` lists them."""
        for memory in self.memories() if isinstance(kind, str) else ():
            if memory.kind == kind:
                return memory
        raise InvalidArgument(
            f"device {self!r} has no memory of kind {kind!r}; it has "
            f"{sorted(m.kind for m in self.memories())}"
        )

    def memory_stats(self) -> Mapping[str, int]:
        """Bytes in use, peak, limit (keys of ``PJRT_Device_MemoryStats``). Optional."""
        self._unimplemented("memory_stats")

    def stream_for_external_ready_events(self) -> int:
        """Returns the handle of a stream on which another library waits for its own work.

        Pass it to `Client.buffer_from_dlpack`: uses of that buffer are ordered after that work.
        Optional; for devices with streams.
        """
        self._unimplemented("stream_for_external_ready_events")

    if TYPE_CHECKING:  # where the backend states them in `attributes`
        coords: list[int]
        core_on_chip: int
        num_cores: int
        slice_index: int
    else:

        def __getattr__(self, name: str) -> Any:
            return find_attribute(self, name, OF_DEVICES)

    @property
    def device_kind(self) -> str:
        """The `kind`."""
        return self.kind

    @property
    def host_id(self) -> int:
        """The `process_index`."""
        return self.process_index

    @property
    def task_id(self) -> int:
        """The `process_index`."""
        return self.process_index

    def addressable_memories(self) -> Sequence[Memory]:
        """Returns the `memories`."""
        return self.memories()

    def get_stream_for_external_ready_events(self) -> int:
        """Returns `stream_for_external_ready_events`."""
        return self.stream_for_external_ready_events()

    def __repr__(self) -> str:
        return f"{self.platform}:{self.id}"
