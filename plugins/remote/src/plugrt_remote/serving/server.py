"""`Server`: a backend, and the sessions of its clients."""

from __future__ import annotations

import os
import socket
import threading
from contextlib import suppress

from plugrt.errors import AlreadyExists, Unavailable
from plugrt.interface import Client
from plugrt_remote.addresses import connect, peer_user, set_buffers, socket_path
from plugrt_remote.serving.backend import ServedBackend
from plugrt_remote.serving.session import Session


class Server:
    """Serves the devices of a client to other processes of this user."""

    def __init__(self, client: Client) -> None:
        self.backend = ServedBackend(client)
        self._sessions = self.backend.sessions
        self._lock = threading.Lock()
        self._listener: socket.socket | None = None

    def bind(self, address: str) -> None:
        """Makes the socket, which this user alone can use.

        Raises `AlreadyExists` where another server listens; a socket that is left over is replaced.
        """
        path = socket_path(address)
        with suppress(Unavailable):
            connect(address).close()
            raise AlreadyExists(f"another server listens at {address}")
        with suppress(FileNotFoundError):
            os.unlink(path)
        listener = socket.socket(socket.AF_UNIX)
        mask = os.umask(0o177)
        try:
            listener.bind(path)
        except BaseException:
            listener.close()
            raise
        finally:
            os.umask(mask)
        listener.listen(128)
        self._listener, self._path = listener, path

    def serve(self) -> None:
        """Accepts connections until `close`."""
        while (session := self.accept()) is not None:
            threading.Thread(target=session.run, daemon=True, name="plugrt-session").start()

    def accept(self) -> Session | None:
        """Waits for a client, and returns its session, not yet running; None after `close`."""
        while (listener := self._listener) is not None:
            try:
                sock, _ = listener.accept()
            except OSError:  # closed
                break
            if peer_user(sock) not in (os.geteuid(), 0):
                sock.close()
                continue
            set_buffers(sock)
            session = Session(self.backend, sock, self._forget)
            with self._lock:
                self._sessions.add(session)
            return session
        return None

    def close(self) -> None:
        """Removes the socket, and ends `serve`."""
        listener, self._listener = self._listener, None
        if listener is not None:
            with suppress(OSError):
                os.unlink(self._path)
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()

    def _forget(self, session: object) -> None:
        with self._lock:
            self._sessions.discard(session)
