"""`Session`: a started backend, shared by its client, buffers and programs."""

from __future__ import annotations

from plugrt.errors import FailedPrecondition, InvalidArgument, ResourceExhausted
from plugrt.interface import Client, Device
from plugrt_sdk.backend import Backend
from plugrt_sdk.device import BackendDevice


class Session:
    """A backend and its devices. The backend is closed when its client and all buffers are."""

    __slots__ = ("_closed", "_live", "backend", "client", "devices")

    def __init__(self, backend: Backend, client: Client) -> None:
        self.backend = backend
        self.client = client
        self.devices = [BackendDevice(client, i, kind) for i, kind in enumerate(backend.devices())]
        self._live = 0
        self._closed = False

    @property
    def backend_name(self) -> str:
        """The client's name for messages."""
        return self.client.backend_name

    def exhausted(self, what: str, error: MemoryError) -> ResourceExhausted:
        """Returns the error for what found no memory: as it is, or Python's with PJRT's code.

        The traceback is that of the author's method.
        """
        if isinstance(error, ResourceExhausted):
            return error
        found = ResourceExhausted(f"{self.backend_name} has no memory for {what}: {error}")
        return found.with_traceback(error.__traceback__)

    def require_open(self) -> None:
        """Raises `FailedPrecondition` after `close`."""
        if self._closed:
            raise FailedPrecondition(f"the client of {self.backend_name} was closed")

    def require_device(self, device: Device) -> BackendDevice:
        """Returns a device if it is the client's; raises `InvalidArgument` if not."""
        self.require_open()
        if not isinstance(device, BackendDevice) or device.client is not self.client:
            raise InvalidArgument(f"{device!r} is not a device of {self.backend_name}")
        return device

    def add_buffer(self) -> None:
        """Counts a buffer that was made."""
        self._live += 1

    def remove_buffer(self) -> None:
        """Counts a deleted buffer; the last one of a closed client closes the backend."""
        self._live -= 1
        self._close_if_idle()

    def close(self) -> None:
        """Closes the backend, now or with the last buffer."""
        if not self._closed:
            self._closed = True
            self._close_if_idle()

    def _close_if_idle(self) -> None:
        if self._closed and not self._live:
            self.backend.close()
