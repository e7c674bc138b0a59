"""`Server`: a backend, and the sessions of its clients."""

from __future__ import annotations

import os
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress

from plugrt.errors import AlreadyExists, ConfigError, Unavailable
from plugrt.interface import Client
from plugrt_remote import tls
from plugrt_remote.addresses import connect, parse, peer_user, set_buffers
from plugrt_remote.log import logger
from plugrt_remote.serving.backend import Policy, ServedBackend
from plugrt_remote.serving.session import Session

_MOST_SESSIONS = 1000


class Server:
    """Serves the devices of a client to processes of this user, or by TLS with a token."""

    def __init__(self, client: Client, policy: Policy | None = None) -> None:
        self.backend = ServedBackend(client, policy)
        self._sessions = self.backend.sessions
        self._lock = threading.Lock()
        self._listener: socket.socket | None = None
        self._path = ""
        self._context: ssl.SSLContext | None = None
        self._open = 0

    def bind(self, address: str, certificate: str = "", key: str = "") -> None:
        """Opens the listening socket: a Unix socket for this user alone, or TCP with TLS.

        Replaces a Unix socket that another server has left over. Raises `AlreadyExists` if another
        server listens, and `ConfigError` for an address that cannot be used, and for ``tls://``
        without a certificate, a key and a token.
        """
        self._path, host, port = parse(address)
        if not self._path:
            if not (certificate and key and self.backend.policy.token):
                raise ConfigError(
                    f"{address} is only served with a certificate, its key and a token: "
                    "--certificate FILE --key FILE --token-file FILE"
                )
            self._context = tls.server_context(certificate, key)
            try:
                self._listener = socket.create_server((host, port), backlog=128)
            except OSError as error:
                raise ConfigError(f"nothing can listen at {address}: {error}") from None
            return
        with suppress(Unavailable):
            connect(address).sock.close()
            raise AlreadyExists(f"another server listens at {address}")
        with suppress(FileNotFoundError):
            os.unlink(self._path)
        listener = socket.socket(socket.AF_UNIX)
        mask = os.umask(0o177)
        try:
            listener.bind(self._path)
        except BaseException:
            listener.close()
            raise
        finally:
            os.umask(mask)
        listener.listen(128)
        self._listener = listener

    @property
    def port(self) -> int:
        """The TCP port; for port 0 the one that the system chose."""
        assert self._listener is not None
        return int(self._listener.getsockname()[1])

    def serve(self) -> None:
        """Accepts connections until `close`, or until the served client is lost."""
        self.backend.client.on_lost(lambda _: self.close())
        while (serve := self.accept()) is not None:
            threading.Thread(target=serve, daemon=True, name="plugrt-session").start()

    def accept(self) -> Callable[[], None] | None:
        """Waits for a client, and returns a function that serves it; None after `close`."""
        while (listener := self._listener) is not None:
            try:
                sock, _ = listener.accept()
            except OSError:  # closed
                break
            user = None if self._context else peer_user(sock)
            with self._lock:
                if user not in (None, os.geteuid(), 0) or self._open == _MOST_SESSIONS:
                    sock.close()
                    continue
                self._open += 1
            return lambda: self._serve(sock)
        return None

    def _serve(self, sock: socket.socket) -> None:
        try:
            if self._context is None:
                set_buffers(sock)
            else:
                sock, _ = tls.begin(sock, self._context)
            session = Session(self.backend, sock, self._forget, same_machine=self._context is None)
            with self._lock:
                self._sessions.add(session)
            session.run()
        except OSError as error:  # the client does not use TLS, or rejects the certificate
            logger.warning("a connection is refused: %s", error)
            sock.close()
        finally:
            with self._lock:
                self._open -= 1

    def close(self) -> None:
        """Closes the listening socket, removes its file, and ends `serve`."""
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
