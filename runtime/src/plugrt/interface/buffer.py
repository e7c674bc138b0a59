"""`Buffer`: an array on one device; `Shards`: an array on several."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from plugrt.errors import ArgumentTypeError
from plugrt.interface.backend_object import BackendObject
from plugrt.interface.checks import is_iterable
from plugrt.interface.device import Device
from plugrt.interface.event import Event
from plugrt.interface.memory import Memory

if TYPE_CHECKING:
    import numpy.typing as npt

    from plugrt.interface.memory_layout import Layout


class Buffer(BackendObject, ABC):
    """An array on one device. Reading it waits for the computation that makes it."""

    __slots__ = ("__weakref__",)

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The dimensions."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """The NumPy (or ml_dtypes) dtype of an element."""

    @property
    @abstractmethod
    def device(self) -> Device:
        """The device that holds it."""

    @property
    def memory(self) -> Memory:
        """The memory that holds it."""
        return self.device.default_memory()

    @property
    def layout(self) -> Layout:
        """The order of the elements in that memory. Optional (``layouts``)."""
        self._unimplemented("layout")

    @abstractmethod
    def to_host(self) -> npt.NDArray[Any]:
        """Waits, then returns the contents as a read-only, C-contiguous or strided NumPy array.

        Where the backend declares ``zero_copy_get`` the array aliases the buffer and keeps it
        alive. Raises the `PjrtError` of the computation that failed to make it, and
        `DeletedBuffer` after `delete` or donation.
        """

    @abstractmethod
    def delete(self) -> None:
        """Frees the memory; pending work is finished first. A second call does nothing."""

    @abstractmethod
    def is_deleted(self) -> bool:
        """Whether `delete` was called or the buffer was donated."""

    @abstractmethod
    def ready_event(self) -> Event:
        """An event that is ready when the contents are."""

    def block_until_ready(self) -> None:
        """Waits until the contents are ready; raises if computing them failed."""
        self.ready_event().wait()

    def copy_to_host_async(self) -> None:
        """Begins to copy to the host so that `to_host` need not wait. A hint; may do nothing."""

    def on_device_size_in_bytes(self) -> int:
        """The size on the device in bytes, padding included. Optional."""
        self._unimplemented("on_device_size_in_bytes")

    def copy_to_device(self, device: Device) -> Buffer:
        """Returns a copy on another device of the same client. Optional."""
        self._unimplemented("copy_to_device")

    def copy_to_memory(self, memory: Memory) -> Buffer:
        """Returns a copy in another memory of the same client. Optional."""
        self._unimplemented("copy_to_memory")

    def unsafe_pointer(self) -> int:
        """The address of the contents; valid until the buffer is deleted. Optional."""
        self._unimplemented("unsafe_pointer")

    def to_dlpack(self, stream: int | None = None) -> Any:
        """Returns a ``dltensor`` PyCapsule that shares the memory. Optional.

        The contents are ready for work that the consumer enqueues on ``stream``, the parameter of
        the array API's ``__dlpack__``: None, -1 (do not wait) or a number that the platform
        defines.
        """
        self._unimplemented("to_dlpack")

    def dlpack_device(self) -> tuple[int, int]:
        """Returns DLPack's ``(device_type, device_id)``. Optional."""
        self._unimplemented("dlpack_device")


def require_buffers(buffers: Sequence[Buffer]) -> tuple[Buffer, ...]:
    """Returns the buffers as a tuple; raises `ArgumentTypeError` if they are something else."""
    if is_iterable(buffers):
        found = tuple(buffers)
        if all(isinstance(buffer, Buffer) for buffer in found):
            return found
    raise ArgumentTypeError(f"shards are made of buffers; got {buffers!r:.60}")


Shards = Sequence[Buffer]
"""The buffers of one array, one for each addressable device, in device-assignment order.

An implementation may return a sequence class of its own from `LoadedExecutable.execute` and
recognise it when it is passed as an argument (so that arrays are not split and joined between
launches), but it accepts any sequence of its own buffers. If that class has a method
``block_until_ready()``, it waits for all of them at once.
"""
