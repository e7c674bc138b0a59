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


class Awaited(Protocol):
    """A request or an event that a message of the server makes ready."""

    ready: bool

    def wait_for_notice(self) -> None:
        """Waits until a thread of the connection has received the message."""


class Watched(Awaited, Protocol):
    """An event that a notice of the server makes ready."""

    def set(
        self, error: PlugrtError | None, contents: tuple[int, Any] | None = None
    ) -> Callable[[], None] | None:
        """Marks the event as ready; returns a function that calls its callbacks, or None."""


class Call:
    """A request that the server answers."""

    __slots__ = ("_answered", "error", "payload", "ready", "result")

    def __init__(self) -> None:
        self._answered: threading.Event | None = None
        self.ready = False
        self.error: PlugrtError | None = None
        self.result: Any = None
        self.payload: Any = None

    def set(self, error: PlugrtError | None, result: Any = None, payload: Any = None) -> None:
        """Stores the answer or the error, and wakes the thread that waits."""
        self.error, self.result, self.payload, self.ready = error, result, payload, True
        if self._answered is not None:
            self._answered.set()

    def wait_for_notice(self) -> None:
        """Waits until a thread of the connection has received the message."""
        answered = self._answered = threading.Event()
        if not self.ready:
            answered.wait()


class Pending:
    """The requests and events of a connection, by number."""

    def __init__(self) -> None:
        self.calls: dict[int, Call] = {}
        self.watched: dict[int, Watched] = {}

    def take(self, op: int, body: bytes, payload: Any) -> Callable[[], None] | None:
        """Handles an answer or a notice; returns a function for the caller to call, or None."""
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
                call.set(wire.unpack_error(value) if op == Op.ERROR else None, value, payload)
            elif op == Op.ERROR and not number:  # the server's reason to end the connection
                raise ProtocolError(unpack(body[wire.NUMBER.size :])[2])
        else:
            raise ProtocolError(f"a server sends no message {op}")
        return None

    def fail_all(self, error: PlugrtError) -> None:
        """Makes all requests and events fail with the error of the connection."""
        for call in list(self.calls.values()):
            call.set(error)
        while self.watched:
            try:
                _, event = self.watched.popitem()
            except KeyError:  # another thread took the last
                return
            then = event.set(error)
            if then is not None:
                start_thread(then)  # the caller may hold a lock that the function needs
