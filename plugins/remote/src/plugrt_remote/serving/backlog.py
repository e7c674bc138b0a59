"""`Backlog`: a queue of the messages that a session has received and not handled."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

_PATIENCE = 1.0


class Backlog:
    """A queue of messages between two threads, of at most about ``most`` bytes.

    `add` waits while the queue is full, and calls ``relieve`` after each second without room: the
    other thread may wait for an answer, which the client sends after those messages.
    """

    def __init__(self, most: int, relieve: Callable[[], object]) -> None:
        self._most, self._relieve = most, relieve
        self._messages: deque[tuple[int, bytes, Any]] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self._ended = False

    def add(self, op: int, body: bytes, payload: Any) -> None:
        """Adds a message once there is room; after `end` it is never handled."""
        with self._changed:
            while not self._changed.wait_for(self._has_room, _PATIENCE):
                self._relieve()
            self._messages.append((op, body, payload))
            self._bytes += _size(body, payload)
            self._changed.notify_all()

    def _has_room(self) -> bool:
        return self._bytes < self._most or self._ended

    def take(self) -> tuple[int, bytes, Any] | None:
        """Waits for a message; None once `end` was called."""
        with self._changed:
            self._changed.wait_for(lambda: self._messages or self._ended)
            if self._ended:
                return None
            _, body, payload = message = self._messages.popleft()
            self._bytes -= _size(body, payload)
            self._changed.notify_all()
            return message

    def cancel(self, op: int, head: bytes) -> int:
        """Cancels messages ``op`` whose body begins with ``head``; returns their number.

        A cancelled message has an empty payload instead of None.
        """
        with self._changed:
            found = [
                i
                for i, (of, body, payload) in enumerate(self._messages)
                if of == op and payload is None and body.startswith(head)
            ]
            for i in found:
                self._messages[i] = (op, self._messages[i][1], b"")
        return len(found)

    def end(self) -> None:
        """Drops the messages; calls that wait return."""
        with self._changed:
            self._ended = True
            self._messages.clear()
            self._changed.notify_all()


def _size(body: bytes, payload: Any) -> int:
    return 256 + len(body) + (0 if payload is None else len(payload))
