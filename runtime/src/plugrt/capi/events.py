"""`Event`: when asynchronous work of a library has happened, and how it ended."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable
from typing import Any

from plugrt import interface
from plugrt.capi.abi._abi import ffi
from plugrt.capi.callback_threads import entered, for_good
from plugrt.capi.client_handle import ClientHandle
from plugrt.errors import PjrtError

_log = logging.getLogger(__name__)

_waiting: dict[int, tuple[Event, Callable[[PjrtError | None], None]]] = {}
_keys = itertools.count(1)


class Event(interface.Event):
    """A ``PJRT_Event`` that this object owns."""

    __slots__ = ("_home", "_pointer")

    def __init__(self, home: ClientHandle, pointer: Any) -> None:
        self._home = home
        self._pointer = home.own("Event_Destroy", "event", pointer)

    def is_ready(self) -> bool:
        return self._home.event_is_ready(self._pointer)

    def wait(self) -> None:
        self._home.library.call("Event_Await", event=self._pointer)
        if self._home.pending:
            self._home.sweep()

    def on_ready(self, callback: Callable[[PjrtError | None], None]) -> None:
        key = next(_keys)
        _waiting[key] = (self, callback)
        try:
            self._home.library.call(
                "Event_OnReady",
                event=self._pointer,
                callback=_on_ready,
                user_arg=ffi.cast("void*", key),
            )
        except PjrtError:
            _waiting.pop(key, None)
            raise


@for_good
@ffi.callback("PJRT_Event_OnReadyCallback")  # type: ignore[untyped-decorator]
@entered
def _on_ready(error: Any, key: Any) -> None:
    waiting = _waiting.pop(int(ffi.cast("uintptr_t", key)), None)
    if waiting is None:
        _log.debug("a library called back for an event again, or with a key that is not ours")
        return
    event, callback = waiting
    callback(event._home.library.take_error(error) if error else None)


def await_and_destroy(home: ClientHandle, pointer: Any) -> None:
    """Waits for an event that nobody else has; raises the error it ended in."""
    try:
        home.library.call("Event_Await", event=pointer)
    finally:
        home.release("Event_Destroy", "event", pointer)
