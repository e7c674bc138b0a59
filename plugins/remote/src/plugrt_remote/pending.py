"""`Pending`: requests that are not answered, and events that are not ready."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

from plugrt.errors import PlugrtError
from plugrt.lifetime.thread_work import start_thread
from plugrt_remote import wire
from plugrt_remote.values import ProtocolError, unpack
from plugrt_remote.wire import Op


class Watched(Protocol):
    """An event that the server sends a notice for."""

    ready: bool

    def set(
        self, error: PlugrtError | None, contents: tuple[int, Any] | None = None
    ) -> Callable[[], None] | None:
        """Makes it ready, and returns a function that calls the callbacks, or None."""

    def wait_for_notice(self) -> None:
        """Waits while threads of the connection receive."""


class Call:
    """A request that is answered."""

    __slots__ = ("done", "error", "event", "payload", "result")

    def __init__(self) -> None:
        self.done = False
        self.error: PlugrtError | None = None
        self.event: threading.Event | None = None
        self.result: Any = None
        self.payload: Any = None


class Pending:
    """The requests and events of a connection, by number."""

    def __init__(self) -> None:
        self.calls: dict[int, Call] = {}
        self.watched: dict[int, Watched] = {}

    def take(self, op: int, body: bytes, payload: Any) -> Callable[[], None] | None:
        """Handles an answer or a notice; returns a function to call then, or None."""
        if op == Op.READY:
            number, handle = wire.READY.unpack_from(body)
            event = self.watched.get(number)
            if event is None:
                return None
            failed = unpack(body[wire.READY.size :])
            contents = None if payload is None else (handle, payload)
            then = event.set(failed and wire.unpack_error(failed), contents)
            self.watched.pop(number, None)
            return then
        [number] = wire.NUMBER.unpack_from(body)
        if op in (Op.REPLY, Op.ERROR):
            call = self.calls.get(number)
            if call is not None:
                value = unpack(body[wire.NUMBER.size :])
                if op == Op.ERROR:
                    call.error = wire.unpack_error(value)
                call.result, call.payload, call.done = value, payload, True
                if call.event is not None:
                    call.event.set()
            elif op == Op.ERROR and not number:  # why the server ends the connection
                raise ProtocolError(unpack(body[wire.NUMBER.size :])[2])
        else:
            raise ProtocolError(f"a server sends no message {op}")
        return None

    def fail_all(self, error: PlugrtError) -> None:
        """Gives all requests and events this error, as the connection has ended."""
        for call in list(self.calls.values()):
            call.error, call.done = error, True
            if call.event is not None:
                call.event.set()
        while self.watched:
            try:
                _, event = self.watched.popitem()
            except KeyError:  # another thread took the last
                return
            then = event.set(error)
            if then is not None:
                start_thread(then)  # who calls this may hold a lock that the function needs
