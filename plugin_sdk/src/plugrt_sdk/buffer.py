"""`BackendBuffer`: an array on a backend's device; owns the backend's handle."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.argument_errors import with_argument_errors
from plugrt.errors import DeletedBuffer, Internal
from plugrt.interface import Buffer, Device, Event, Memory, ReadyEvent, TensorType
from plugrt_sdk.backend import Handle
from plugrt_sdk.device import BackendDevice
from plugrt_sdk.session import Session


class BackendBuffer(Buffer):
    """An array on a backend's device. The handle is released once, by `delete` or the finaliser."""

    __slots__ = ("_deleted", "_device", "_handle", "_session", "_type")

    def __init__(
        self, session: Session, handle: Handle, tensor_type: TensorType, device: BackendDevice
    ) -> None:
        self._deleted = False
        self._session = session
        self._handle = handle
        self._type = tensor_type
        self._device = device
        session.add_buffer()

    @property
    def shape(self) -> tuple[int, ...]:
        return self._type.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._type.dtype

    @property
    def type(self) -> TensorType:
        """The shape and dtype."""
        return self._type

    @property
    def device(self) -> BackendDevice:
        return self._device

    @property
    def handle(self) -> Handle:
        """The author's handle; raises `DeletedBuffer` after `delete`."""
        if self._deleted:
            raise DeletedBuffer(f"the buffer {self._type} on {self._device!r} was deleted")
        return self._handle

    def to_host(self) -> npt.NDArray[Any]:
        host = np.asarray(self._session.backend.get(self.handle))
        found = TensorType(host.shape, host.dtype)
        if found != self._type:
            raise Internal(
                f"{self._session.backend_name}: get() returned {found} for an array {self._type}"
            )
        host = host.view()
        host.flags.writeable = False
        return host

    def delete(self) -> None:
        if not self._deleted:
            self._deleted = True
            handle, self._handle = self._handle, None
            self._session.backend.delete(handle)
            self._session.remove_buffer()

    def is_deleted(self) -> bool:
        return self._deleted

    def ready_event(self) -> Event:
        _ = self.handle
        return ReadyEvent()

    def copy_to_device(self, device: Device) -> BackendBuffer:
        target = self._session.require_device(device)
        copy = self._session.backend.copy(self.handle, target.id)
        return BackendBuffer(self._session, copy, self._type, target)

    @with_argument_errors
    def copy_to_memory(self, memory: Memory) -> BackendBuffer:
        if memory is self._device.default_memory():
            return self.copy_to_device(self._device)
        return self.copy_to_device(memory.addressable_by_devices()[0])

    def on_device_size_in_bytes(self) -> int:
        _ = self.handle
        return self._type.nbytes

    def __del__(self) -> None:
        if not getattr(self, "_deleted", True):
            self.delete()
