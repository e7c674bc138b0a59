"""`Sender`: sends the messages of a connection, each as a whole."""

from __future__ import annotations

import socket
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any


class Sender:
    """Sends messages from any thread. After an interruption the next call sends the rest."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._lock = threading.Lock()
        self.unsent: list[Any] = []
        """The parts that the socket has not taken yet."""
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
        """Sends what is unsent. Functions in C count the bytes: no interruption comes between."""
        parts, sent = self.unsent, self._sent
        while parts:
            if sent:
                rest = memoryview(parts[0])[sent[0] :]
                if not rest:
                    del parts[0]  # and the count after it: an interruption repeats neither
                    sent.clear()
                    continue
                parts[0] = rest
                sent.clear()
            sent.extend(map(self._sock.send, parts[:1]))
