"""`Memory`: a memory space of a client."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from plugrt.interface.backend_object import BackendObject

if TYPE_CHECKING:
    from plugrt.interface.client import Client
    from plugrt.interface.device import Device


class Memory(BackendObject, ABC):
    """A memory space, such as a device's own (kind ``device``) or pinned host memory."""

    __slots__ = ()

    @property
    @abstractmethod
    def id(self) -> int:
        """Unique among the memories of the client."""

    @property
    @abstractmethod
    def kind(self) -> str:
        """``device``, ``pinned_host``, ``unpinned_host`` or a backend's own name."""

    @property
    @abstractmethod
    def client(self) -> Client:
        """The client that it belongs to."""

    @abstractmethod
    def addressable_by_devices(self) -> Sequence[Device]:
        """The devices that can read and write it."""

    def __repr__(self) -> str:
        return f"<{self.client.platform} memory {self.id} ({self.kind})>"
