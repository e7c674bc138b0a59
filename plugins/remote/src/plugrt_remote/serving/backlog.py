"""`Backlog`: messages that are received while the session handles others."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

_MOST = 1 << 30


class Backlog:
    """A queue of messages between two threads.

    `add` waits while the queue has a gigabyte: a client that sends so much while one of its
    functions runs exceeds the limit of the function's time.
    """

    def __init__(self) -> None:
        self._messages: deque[tuple[int, bytes, Any]] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self._ended = False

    def add(self, op: int, body: bytes, payload: Any) -> None:
        """Adds a message; drops it once `end` was called."""
        with self._changed:
            self._changed.wait_for(lambda: self._bytes < _MOST or self._ended)
            self._messages.append((op, body, payload))
            self._bytes += _size(body, payload)
            self._changed.notify_all()

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

    def end(self) -> None:
        """Drops the messages, and ends what waits."""
        with self._changed:
            self._ended = True
            self._messages.clear()
            self._changed.notify_all()


def _size(body: bytes, payload: Any) -> int:
    return 256 + len(body) + (0 if payload is None else len(payload))
