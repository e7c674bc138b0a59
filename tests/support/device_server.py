"""A device server on a thread of the test's process, and raw connections to it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from plugrt.interface import Client
from plugrt_remote.addresses import connect
from plugrt_remote.serving.backend import Policy
from plugrt_remote.serving.server import Server


@contextmanager
def serving(
    client: Client, folder: Path, policy: Policy | None = None, *files: str
) -> Iterator[str]:
    """Serves a client's devices within the block; yields the address.

    With ``files``, certificate and key, it is ``tls://``.
    """
    server = Server(client, policy)
    address = "tls://127.0.0.1:0" if files else f"unix:{folder}/s"
    server.bind(address, *files)
    if files:
        address = f"tls://127.0.0.1:{server.port}"
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        yield address
    finally:
        server.close()
        thread.join()
        server.backend.pool.shutdown()


def answer_to(address: str, *messages: bytes) -> bytes:
    """Sends messages and closes this side; returns the bytes from the server until it closes."""
    with connect(address).sock as sock:
        sock.settimeout(30)
        try:
            for message in messages:
                sock.sendall(message)
            sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # an earlier message made the server close
        found = b""
        try:
            while part := sock.recv(1 << 16):
                found += part
        except ConnectionError:
            pass  # the server closed with unread messages
        return found


def becomes_true(question: Callable[[], bool], seconds: float = 30.0) -> bool:
    """Whether ``question()`` is true within ``seconds``; another thread makes it true."""
    deadline = time.monotonic() + seconds
    while not (found := question()) and time.monotonic() < deadline:
        time.sleep(0.005)
    return found
