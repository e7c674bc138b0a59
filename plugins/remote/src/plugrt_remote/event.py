"""`RemoteEvent`: the completion of work on a server."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from plugrt.errors import InvalidArgument, PjrtError, PlugrtError, read_message
from plugrt.interface import Event
from plugrt.interface.checks import require_callback
from plugrt_remote import wire
from plugrt_remote.connection import Connection
from plugrt_remote.wire import Op, frame


class RemoteEvent(Event):
    """Becomes ready by a notice of the server, which a launch or this object requests."""

    __slots__ = ("_callbacks", "_connection", "contents", "error", "ready")

    def __init__(self, connection: Connection, number: int, asked: bool = False) -> None:
        self._connection = connection
        self._callbacks: deque[Callable[[PjrtError | None], None]] = deque()
        self.ready = False
        self.error: PlugrtError | None = None
        self.contents: tuple[int, Any] | None = None
        """The number and the contents of an array, if the notice brought contents."""
        connection.watched[number] = self
        if not asked:
            connection.post(frame(Op.WATCH, wire.NUMBER.pack(number)))

    def set(
        self, error: PlugrtError | None, contents: tuple[int, Any] | None = None
    ) -> Callable[[], None] | None:
        """Marks the event as ready; returns a function that calls its callbacks, or None."""
        if not self.ready:
            self.error, self.contents, self.ready = error, contents, True
        return self._call_back if self._callbacks else None

    def is_ready(self) -> bool:
        if not self.ready:
            self._connection.poll()
        return self.ready

    def wait(self) -> None:
        if not self.ready:
            self._connection.wait(self)
        if self.error is not None:
            raise wire.unpack_error(wire.pack_error(self.error))

    def wait_for_notice(self) -> None:
        """Waits until a thread of the connection has received the notice."""
        gate = threading.Event()
        self._add(lambda _: gate.set())
        gate.wait()

    def on_ready(self, callback: Callable[[PjrtError | None], None]) -> None:
        require_callback(callback)
        self._connection.notices = True
        self._connection.start_threads()
        self._add(callback)

    def _add(self, callback: Callable[[PjrtError | None], None]) -> None:
        # No lock, which a forked child could find held: the later of `set` and this call calls it.
        self._callbacks.append(callback)
        if self.ready:
            self._call_back()

    def _call_back(self) -> None:
        """Calls each callback with the error, as `InvalidArgument` if it is no `PjrtError`."""
        error = self.error
        if error is not None and not isinstance(error, PjrtError):
            error = InvalidArgument(read_message(error))
        while self._callbacks:
            try:
                callback = self._callbacks.popleft()
            except IndexError:  # another thread took the last
                return
            callback(error)
