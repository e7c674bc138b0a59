"""`Event`: when asynchronous work of a library has happened, and how it ended."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from plugrt import interface
from plugrt.capi._abi import ffi
from plugrt.capi.callbacks import entered
from plugrt.capi.handle import ClientHandle
from plugrt.errors import PjrtError

_waiting: dict[int, tuple[Event, Callable[[PjrtError | None], None]]] = {}
_keys = itertools.count(1)


class Event(interface.Event):
    """A ``PJRT_Event`` that this object owns."""

    __slots__ = ("_home", "_pointer")

    def __init__(self, home: ClientHandle, pointer: Any) -> None:
        self._home = home
        self._pointer = pointer

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
            del _waiting[key]
            raise

    def __del__(self) -> None:
        self._home.release("Event_Destroy", "event", self._pointer)


@ffi.callback("PJRT_Event_OnReadyCallback")  # type: ignore[untyped-decorator]
@entered
def _on_ready(error: Any, key: Any) -> None:
    event, callback = _waiting.pop(int(ffi.cast("uintptr_t", key)))
    callback(event._home.library.take_error(error) if error else None)


def await_and_destroy(home: ClientHandle, pointer: Any) -> None:
    """Waits for an event that nobody else has; raises the error it ended in."""
    try:
        home.library.call("Event_Await", event=pointer)
    finally:
        home.release("Event_Destroy", "event", pointer)
