"""`Event`: the completion, or failure, of a library's asynchronous work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from plugrt import interface
from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.structs import new_struct
from plugrt.capi.library.callback_threads import (
    c_callback,
    expect,
    expected,
    mark_callback,
)
from plugrt.capi.library.client_handle import ClientHandle
from plugrt.capi.log import logger
from plugrt.errors import InvalidReply, PjrtError
from plugrt.interface.checks import require_callback
from plugrt.lifetime.forks import keep_forever

if TYPE_CHECKING:
    from plugrt.capi.abi._abi import CData


class Event(interface.Event):
    """A ``PJRT_Event`` that this object owns."""

    __slots__ = ("_handle", "_pointer")

    def __init__(self, handle: ClientHandle, pointer: CData) -> None:
        self._handle = handle
        self._pointer = handle.own("Event_Destroy", "event", pointer)

    def is_ready(self) -> bool:
        return self._handle.is_event_ready(self._pointer)

    def has_happened(self) -> bool:
        """As `is_ready`; False if the library cannot report it."""
        return self._handle.has_ended(self._pointer)

    def wait(self) -> None:
        self._handle.library.call("Event_Await", event=self._pointer)
        if self._handle.pending:
            self._handle.sweep()

    def wait_for_end(self) -> None:
        """Waits until it has happened, and frees its error: the reader of a result gets it."""
        library = self._handle.library
        args = new_struct("struct PJRT_Event_Await_Args")
        args.event = self._pointer
        if error := library.await_event(args):
            library.take_error(error)

    def on_ready(self, callback: Callable[[PjrtError | None], None]) -> None:
        require_callback(callback)
        key = expect((self, callback))
        try:
            self._handle.library.call(
                "Event_OnReady",
                event=self._pointer,
                callback=_call_when_ready,
                user_arg=ffi.cast("void*", key),
            )
        except PjrtError:
            expected.pop(key, None)
            raise


@c_callback("PJRT_Event_OnReadyCallback")
@mark_callback
def _call_when_ready(error: object, key: object) -> None:
    waiting = expected.pop(int(ffi.cast("uintptr_t", key)), None)
    if waiting is None:
        logger.debug("a library called back for an event again, or with a key that is not ours")
        return
    event, callback = waiting
    callback(event._handle.library.take_error(error) if error else None)


@contextmanager
def lend(memory: object) -> Iterator[None]:
    """Lends host memory to a library, which returns an event for the end of its use.

    If it returns no valid event, the memory is kept for ever, since the end of its use is unknown.
    """
    try:
        yield
    except InvalidReply:
        keep_forever(memory)
        raise


def await_transfer(handle: ClientHandle, pointer: CData, memory: object) -> None:
    """Waits for the event of a transfer from or to the host's ``memory``, and destroys it.

    Raises its error. If the event is not complete although the library reports the end of the wait,
    the memory is kept for ever, as the library may still use it.
    """
    library = handle.library
    try:
        waited = library.call("Event_Await", event=pointer)
        if _is_under_way(handle, pointer):
            raise library.invalid(waited, "the event was not ready when waiting for it had ended")
    except PjrtError:
        if not handle.has_ended(pointer):
            keep_forever(memory)
        raise
    finally:
        handle.release("Event_Destroy", "event", pointer)


def _is_under_way(handle: ClientHandle, pointer: CData) -> bool:
    """Whether the library reports an event as incomplete; False if it cannot report it."""
    try:
        return not handle.is_event_ready(pointer)
    except PjrtError:
        return False
