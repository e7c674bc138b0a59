"""`BackendBuffer`: an array on a backend's device; owns the backend's handle."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.base.dlpack_types import CPU
from plugrt.capi.buffers import dlpack
from plugrt.errors import DeletedBuffer, InvalidArgument
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import Buffer, Device, Event, Layout, Memory, ReadyEvent, TensorType
from plugrt.interface.checks import require_callback
from plugrt.native.finalizers import End
from plugrt_sdk.compiled import Handle
from plugrt_sdk.device import BackendDevice, BackendMemory
from plugrt_sdk.held_arrays import address_of, hold
from plugrt_sdk.layouts import layout_of
from plugrt_sdk.putting import put_array
from plugrt_sdk.returns import require, require_handle, wrong_return
from plugrt_sdk.session import Session
from plugrt_sdk.uses import Held, Uses


class BackendBuffer(Buffer):
    """An array on a backend's device. The handle is released once, by `delete` or the finaliser.

    A token has a buffer as well, whose handle may be None: its event orders the effects.
    """

    __slots__ = (
        "_delete", "_deleted", "_end", "_event", "_handle", "_held", "_memory", "_session",
        "_taker", "_type", "_uses",
    )  # fmt: skip

    def __init__(
        self,
        session: Session,
        handle: Handle,
        tensor_type: TensorType,
        memory: BackendMemory,
        event: Event | None = None,
    ) -> None:
        self._deleted = False
        self._session = session
        self._handle = handle
        self._type = tensor_type
        self._memory = memory
        self._uses: Uses | None = None
        self._event = event
        self._delete: Callable[[], None] | None = None
        if session.counts_buffers:
            self._hold(handle)

    def _hold(self, handle: Handle) -> None:
        """Calls the backend when the buffer is freed."""
        session, event = self._session, self._event
        self._held = held = Held(handle, session)
        self._delete = held.end
        try:
            if session.counts_uses:
                self._uses = uses = Uses(held)
                if session.asynchronous and event is None:
                    self._event = event = session.event_of(handle)
                self._delete = partial(_when_ready, event, uses.ender())
        finally:
            self._end = End(self._delete)

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
    def layout(self) -> Layout:
        if "put_in_layout" not in self._session.methods:
            self._unimplemented("layout (the backend's method put_in_layout)")
        if self._deleted:
            raise self.deleted_error()
        return layout_of(self._type)

    @property
    def handle(self) -> Handle:
        """The author's handle; raises `DeletedBuffer` after `delete`."""
        if self._deleted:
            raise self.deleted_error()
        return self._handle

    def deleted_error(self) -> DeletedBuffer:
        """Returns the error for a use of a deleted array."""
        taker = getattr(self, "_taker", None)
        why = "was deleted" if taker is None else f"was donated to a launch of {taker!r}"
        return DeletedBuffer(f"the buffer {self._type} on {self.device!r} {why}")

    def begin_use(self) -> Handle:
        """Returns the handle, kept until `end_use`; raises `DeletedBuffer` after `delete`."""
        handle = self.handle
        if self._uses is not None and not self._uses.begin():
            raise self.deleted_error()
        return handle

    def end_use(self) -> None:
        """Releases a handle that `begin_use` returned."""
        if self._uses is not None:
            self._uses.end()

    @property
    def uses(self) -> Uses:
        """The counter of the handle's uses, if the backend must know when there are none."""
        assert self._uses is not None
        return self._uses

    def when_ready(self, callback: Callable[[], None]) -> None:
        """Calls back when the contents are ready or failed: now, or on the author's thread."""
        require_callback(callback)
        _when_ready(self._event, callback)

    def to_host(self) -> npt.NDArray[Any]:
        self._require_contents()
        handle = self.begin_use()
        looks = "view" in self._session.methods
        try:
            if self._event is not None:
                self._event.wait()
            host = self._read("view" if looks else "get", handle).view()
        except BaseException:
            self.end_use()
            raise
        if looks and self._uses is not None:
            return hold(host, End(self._uses.ender()))
        self.end_use()
        host.flags.writeable = False
        return host

    def _require_contents(self) -> None:
        if self._type.is_token:
            raise InvalidArgument(f"a token, on {self.device!r}, orders effects and holds nothing")

    def _read(self, method: str, handle: Handle) -> npt.NDArray[Any]:
        """Returns the array that an author's method makes of the handle; checks its type."""
        backend = self._session.backend
        given: Any = require_handle(backend, method, getattr(backend, method)(handle))
        wanted = self._type
        try:
            host = np.asarray(given)
        except ValueError:  # nested lists that are no array
            raise wrong_return(backend, method, f"an array {wanted}", given) from None
        if host.dtype != wanted.dtype or host.shape != wanted.shape:
            found = TensorType(host.shape, host.dtype)
            raise wrong_return(backend, method, f"an array {wanted}", found)
        return host

    def ready_event(self) -> Event:
        if self._deleted:
            raise self.deleted_error()
        return ReadyEvent() if self._event is None else self._event

    def delete(self) -> None:
        """Frees the memory, once its contents are ready and nothing uses it."""
        if self._deleted:
            return
        self._deleted = True
        self._handle = None
        if self._delete is not None:
            self._delete()

    def give_away(self, taker: str, consumed: bool) -> None:
        """Ends the buffer as donated; the handle is the launch's if it has ``consumed`` it."""
        if not self._deleted:
            self._taker = taker
        if consumed:
            self._deleted = True
            self._handle = None
            self._held.forget()
        else:
            self.delete()

    def is_deleted(self) -> bool:
        return self._deleted

    def copy_to_device(self, device: Device) -> BackendBuffer:
        target, backend = self._session.require_device(device), self._session.backend
        if self._type.is_token:
            return self._copy_token(target.default_memory())
        if "copy" not in self._session.methods:
            self._unimplemented("copy_to_device (the backend's method copy)")
        return self._copy(
            target.default_memory(), "copy", lambda handle: backend.copy(handle, target.id)
        )

    @with_argument_errors
    def copy_to_memory(self, memory: Memory) -> BackendBuffer:
        session = self._session
        target, backend = session.require_memory(memory), session.backend
        if self._type.is_token:
            return self._copy_token(target)
        if not session.has_memories:
            return self.copy_to_device(target.device)
        if "copy_to_memory" in session.methods:
            where = (target.device.id, target.kind)
            return self._copy(target, "copy_to_memory", lambda h: backend.copy_to_memory(h, *where))
        handle = put_array(session, self.to_host(), target)
        return BackendBuffer(session, handle, self._type, target)

    def _copy_token(self, target: BackendMemory) -> BackendBuffer:
        """Returns a token that is ready when this one is."""
        _ = self.handle
        return BackendBuffer(self._session, None, self._type, target, self._event)

    def _copy(
        self, target: BackendMemory, method: str, copy: Callable[[Handle], Handle]
    ) -> BackendBuffer:
        """Returns a copy that an author's method makes; the source is kept until it is complete."""
        session = self._session
        handle = self.begin_use()
        try:
            copied = require_handle(session.backend, method, copy(handle))
            made = BackendBuffer(session, copied, self._type, target)
        except BaseException:
            self.end_use()
            raise
        made.when_ready(self.end_use)
        return made

    def unsafe_pointer(self) -> int:
        session = self._session
        self._require_contents()
        if "pointer" in session.methods:
            handle = self.begin_use()
            try:
                found = session.backend.pointer(handle)
            finally:
                self.end_use()
            return require(session.backend, "pointer", found, int, "an address")
        if "view" not in session.methods:
            self._unimplemented("unsafe_pointer")
        host = self.to_host()
        if not host.transpose(layout_of(self._type).major_to_minor).flags.c_contiguous:
            order = "not row-major" if self._type.layout is None else "not in its layout"
            self._unimplemented(f"the address of {self._type}, which is {order},")
        return address_of(host)

    def to_dlpack(self, stream: int | None = None) -> Any:
        """Waits, then returns a capsule that shares the memory; the host's memory has no streams.

        Raises `Unimplemented` where the memory is not the host's or not row-major.
        """
        device = self.dlpack_device()
        host = self._row_major()
        return dlpack.export(address_of(host), self.shape, self.dtype, device, host)

    def dlpack_device(self) -> tuple[int, int]:
        if "view" not in self._session.methods:
            self._unimplemented("DLPack of memory other than the host's")
        return CPU, 0

    def _row_major(self) -> npt.NDArray[Any]:
        host = self.to_host()
        if not host.flags.c_contiguous:
            self._unimplemented(f"the address of {self._type}, which is not row-major,")
        return host

    def on_device_size_in_bytes(self) -> int:
        _ = self.handle
        return self._type.nbytes


def _when_ready(event: Event | None, callback: Callable[[], None]) -> None:
    """Calls a function at once if there is no event, else when the event is complete."""
    if event is None or event.is_ready():
        callback()
    else:
        event.on_ready(lambda _: callback())
