"""`Sender`: sends the messages of a connection, one after the other."""

from __future__ import annotations

import socket
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any


class Sender:
    """Sends messages from any thread. After an interruption the next call sends the rest first."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._lock = threading.Lock()
        self.unsent: list[Any] = []
        """The parts of the current message that are not sent yet."""
        self._sent: deque[int] = deque()

    def send(self, parts: list[Any], descriptors: Sequence[int] = ()) -> None:
        """Sends the parts of a message, and file descriptors with the first."""
        with self._lock:
            if self.unsent:
                self._send()  # the rest of a message whose caller was interrupted
            self.unsent = parts
            if descriptors:
                self._sent.append(socket.send_fds(self._sock, parts[:1], descriptors))
            self._send()

    def _send(self) -> None:
        """Sends ``unsent``. Functions in C send and record the count, without interruption."""
        parts, sent = self.unsent, self._sent
        while parts:
            if sent:
                rest = memoryview(parts[0])[sent[0] :]
                if not rest:
                    del parts[0]  # no interruption can come between this and the next line
                    sent.clear()
                    continue
                parts[0] = rest
                sent.clear()
            sent.extend(map(self._sock.send, parts[:1]))
