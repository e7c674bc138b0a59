"""`BackendBuffer`: an array on a backend's device; owns the backend's handle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.argument_errors import with_argument_errors
from plugrt.errors import DeletedBuffer
from plugrt.interface import Buffer, Device, Event, Memory, ReadyEvent, TensorType
from plugrt_sdk.compiled import Handle
from plugrt_sdk.device import BackendDevice, BackendMemory
from plugrt_sdk.returns import require_handle, wrong_return
from plugrt_sdk.session import Session
from plugrt_sdk.uses import Uses


class BackendBuffer(Buffer):
    """An array on a backend's device. The handle is released once, by `delete` or the finaliser."""

    __slots__ = ("_deleted", "_event", "_handle", "_memory", "_session", "_taker", "_type", "_uses")

    def __init__(
        self, session: Session, handle: Handle, tensor_type: TensorType, memory: BackendMemory
    ) -> None:
        self._deleted = False
        self._session = session
        self._handle = handle
        self._type = tensor_type
        self._memory = memory
        self._uses: Uses | None = None
        self._event: Event | None = None
        session.add_buffer()
        if session.counts_uses:
            self._uses = Uses(handle, session.delete_handle)
            if session.asynchronous:
                self._event = session.event_of(handle)

    @property
    def backend_name(self) -> str:
        return self._session.backend_name

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
        return self._memory.device

    @property
    def memory(self) -> BackendMemory:
        return self._memory

    @property
    def handle(self) -> Handle:
        """The author's handle; raises `DeletedBuffer` after `delete`."""
        if self._deleted:
            raise self.deleted_error()
        return self._handle

    def deleted_error(self) -> DeletedBuffer:
        """Returns the error of whoever uses it although it is gone."""
        taker = getattr(self, "_taker", None)
        why = "was deleted" if taker is None else f"was donated to a launch of {taker!r}"
        return DeletedBuffer(f"the buffer {self._type} on {self.device!r} {why}")

    def begin_use(self) -> Handle:
        """Returns the handle, which stays until `end_use`; `DeletedBuffer` if it is gone."""
        handle = self.handle
        if self._uses is not None and not self._uses.begin():
            raise self.deleted_error()
        return handle

    def end_use(self) -> None:
        """Ends what `begin_use` began."""
        if self._uses is not None:
            self._uses.end()

    @property
    def uses(self) -> Uses:
        """What counts the uses of the handle, where the backend must know when there are none."""
        assert self._uses is not None
        return self._uses

    def when_ready(self, callback: Callable[[], None]) -> None:
        """Calls back when the contents are ready or failed: now, or on the author's thread."""
        event = self._event
        if event is None or event.is_ready():
            callback()
        else:
            event.on_ready(lambda _: callback())

    # --- reading ------------------------------------------------------------------------------

    def to_host(self) -> npt.NDArray[Any]:
        handle = self.begin_use()
        try:
            if self._event is not None:
                self._event.wait()
            host = self._read("get", handle).view()
        finally:
            self.end_use()
        host.flags.writeable = False
        return host

    def _read(self, method: str, handle: Handle) -> npt.NDArray[Any]:
        """Returns what an author's method makes of the handle, if it is an array of this type."""
        backend = self._session.backend
        given: Any = require_handle(backend, method, getattr(backend, method)(handle))
        expected = f"an array {self._type}"
        try:
            host = np.asarray(given)
        except ValueError:  # nested lists that are no array
            raise wrong_return(backend, method, expected, given) from None
        if host.dtype != self._type.dtype or host.shape != self._type.shape:
            raise wrong_return(backend, method, expected, TensorType(host.shape, host.dtype))
        return host

    def ready_event(self) -> Event:
        if self._deleted:
            raise self.deleted_error()
        return ReadyEvent() if self._event is None else self._event

    # --- deleting -----------------------------------------------------------------------------

    def delete(self) -> None:
        """Frees the memory, once its contents are ready and nothing uses it."""
        if self._deleted:
            return
        self._deleted = True
        handle, self._handle = self._handle, None
        if self._uses is None:
            self._session.delete_handle(handle)
        else:
            self.when_ready(self._uses.end)

    def give_away(self, taker: str, consumed: bool) -> None:
        """Ends the buffer as donated; the handle is the launch's if it has ``consumed`` it."""
        if not self._deleted:
            self._taker = taker
        if consumed:
            self._deleted = True
            self._handle = None
            self._session.remove_buffer()
        else:
            self.delete()

    def is_deleted(self) -> bool:
        return self._deleted

    # --- copying ------------------------------------------------------------------------------

    def copy_to_device(self, device: Device) -> BackendBuffer:
        target = self._session.require_device(device)
        backend = self._session.backend
        if "copy" not in self._session.methods:
            self._unimplemented("copy_to_device (the backend's method copy)")
        handle = self.begin_use()
        try:
            copied = require_handle(backend, "copy", backend.copy(handle, target.id))
            copy = BackendBuffer(self._session, copied, self._type, target.default_memory())
        except BaseException:
            self.end_use()
            raise
        copy.when_ready(self.end_use)
        return copy

    @with_argument_errors
    def copy_to_memory(self, memory: Memory) -> BackendBuffer:
        target = self._session.require_memory(memory)
        return self.copy_to_device(target.device)

    def on_device_size_in_bytes(self) -> int:
        _ = self.handle
        return self._type.nbytes

    def __del__(self) -> None:
        if not getattr(self, "_deleted", True):
            self.delete()
