"""`Outbox`: sends messages to a client, without a wait in the threads of the backend."""

from __future__ import annotations

import socket
import threading
from collections import deque
from contextlib import suppress
from typing import Any

from plugrt_remote.values import ProtocolError

_MOST = 1 << 30


class Outbox:
    """Sends messages in order. `send` waits for no lock: any thread and any finaliser may call it.

    `send` sends as much as the socket accepts. If the client does not read, a thread sends the
    rest. The connection of a client that leaves more than a gigabyte of contents unread is closed.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._queue: deque[Any] = deque()
        self._bytes = 0
        self._lock = threading.Lock()
        self._writer: threading.Thread | None = None
        self._closed = False

    def send(self, message: bytes, payload: Any = None) -> None:
        """Adds a message, unless the connection has ended.

        Raises `ProtocolError` if the client leaves too much unread.
        """
        if self._closed:
            return
        if payload is None:
            self._queue.append(memoryview(message))
        else:
            self._queue.append((memoryview(message), memoryview(payload).cast("B")))
            self._bytes += len(payload)
            if self._bytes > _MOST:
                self.close()
                raise ProtocolError(f"the client left {self._bytes} bytes of arrays unread")
        while self._queue and not (self._closed or self._writer) and self._lock.acquire(False):
            try:
                self._drain(socket.MSG_DONTWAIT)
            except BlockingIOError:
                self._writer = threading.Thread(target=self._write, daemon=True)
                self._writer.start()
            except OSError:
                self.close()
            finally:
                self._lock.release()

    def _drain(self, flags: int) -> None:
        queue = self._queue
        while queue:
            first = queue[0]
            if isinstance(first, tuple):
                queue.popleft()
                queue.extendleft(reversed(first))
                continue
            while first:
                first = first[self._sock.send(first, flags) :]
                queue[0] = first
            queue.popleft()
        self._bytes = 0

    def _write(self) -> None:
        """Sends all messages; waits while the client does not read."""
        while True:
            with self._lock:
                try:
                    self._drain(0)
                except OSError:
                    self.close()
                self._writer = None
            if not self._queue or self._closed:
                return
            self._writer = threading.current_thread()

    def close(self) -> None:
        """Ends the connection; unsent and later messages are dropped."""
        self._closed = True
        with suppress(OSError):  # it has ended already
            self._sock.shutdown(socket.SHUT_RDWR)
