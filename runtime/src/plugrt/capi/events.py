"""`Event`: the completion, or failure, of a library's asynchronous work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plugrt import interface
from plugrt.capi.abi._abi import ffi
from plugrt.capi.callback_threads import expect, expected, keep_forever, mark_callback
from plugrt.capi.client_handle import ClientHandle
from plugrt.capi.log import logger
from plugrt.errors import PjrtError
from plugrt.interface_checks import require_callback


class Event(interface.Event):
    """A ``PJRT_Event`` that this object owns."""

    __slots__ = ("_handle", "_pointer")

    def __init__(self, handle: ClientHandle, pointer: Any) -> None:
        self._handle = handle
        self._pointer = handle.own("Event_Destroy", "event", pointer)

    def is_ready(self) -> bool:
        return self._handle.event_is_ready(self._pointer)

    def wait(self) -> None:
        self._handle.library.call("Event_Await", event=self._pointer)
        if self._handle.pending:
            self._handle.sweep()

    def on_ready(self, callback: Callable[[PjrtError | None], None]) -> None:
        require_callback(callback)
        key = expect((self, callback))
        try:
            self._handle.library.call(
                "Event_OnReady",
                event=self._pointer,
                callback=_on_ready,
                user_arg=ffi.cast("void*", key),
            )
        except PjrtError:
            expected.pop(key, None)
            raise


@keep_forever
@ffi.callback("PJRT_Event_OnReadyCallback")  # type: ignore[untyped-decorator]
@mark_callback
def _on_ready(error: Any, key: Any) -> None:
    waiting = expected.pop(int(ffi.cast("uintptr_t", key)), None)
    if waiting is None:
        logger.debug("a library called back for an event again, or with a key that is not ours")
        return
    event, callback = waiting
    callback(event._handle.library.take_error(error) if error else None)


def await_and_destroy(handle: ClientHandle, pointer: Any) -> None:
    """Waits for an event that the caller owns, destroys it, and raises its error."""
    try:
        handle.library.call("Event_Await", event=pointer)
    finally:
        handle.release("Event_Destroy", "event", pointer)
