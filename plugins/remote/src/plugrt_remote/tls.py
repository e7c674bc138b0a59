"""TLS connections over a network, the token's file, and a relay to a plain socket."""

from __future__ import annotations

import os
import select
import socket
import ssl
import stat
from contextlib import suppress
from pathlib import Path

from plugrt.errors import ConfigError, ResourceExhausted
from plugrt.lifetime.thread_work import start_thread

SECONDS_TO_BEGIN = 10.0
"""Time limit for connecting, for the TLS handshake, and for a client's first message."""
_SHORTEST_TOKEN, _LONGEST_TOKEN = 16, 4096
_PIECE = 1 << 18
_KEEP_ALIVE = {
    socket.TCP_KEEPIDLE: 15, socket.TCP_KEEPINTVL: 5, socket.TCP_KEEPCNT: 3,
    socket.TCP_USER_TIMEOUT: 30_000,
}  # fmt: skip
"""TCP options that end a connection after 30 s without an answer of the other machine."""


def read_token(path: str) -> bytes:
    """Returns the token in a file; raises `ConfigError` for a file that other users can read."""
    try:
        token = Path(path).read_bytes().strip()
        mode = os.stat(path).st_mode
    except OSError as error:
        raise ConfigError(f"the token file {path!r} cannot be read: {error.strerror}") from None
    if stat.S_IMODE(mode) & 0o077:
        raise ConfigError(f"others can read the token file {path!r}; chmod 600 {path}")
    if not _SHORTEST_TOKEN <= len(token) <= _LONGEST_TOKEN:
        raise ConfigError(
            f"the token in {path!r} has {len(token)} bytes; it must have {_SHORTEST_TOKEN} to "
            f"{_LONGEST_TOKEN}: openssl rand -hex 32 > {path}"
        )
    return token


def server_context(certificate: str, key: str) -> ssl.SSLContext:
    """Returns the context of a server; raises `ConfigError` if the files cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"the certificate {certificate!r} and the key {key!r} cannot be used: {error}"
        ) from None
    return context


def client_context(authority: str) -> ssl.SSLContext:
    """Returns the context of a client that trusts only ``authority``, a file.

    Raises `ConfigError` if the file cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        context.load_verify_locations(authority)
    except (OSError, ValueError) as error:
        raise ConfigError(f"the authority {authority!r} cannot be used: {error}") from None
    return context


def begin(
    sock: socket.socket, context: ssl.SSLContext, host: str | None = None
) -> tuple[socket.socket, tuple[socket.socket, ...]]:
    """Begins TLS on a TCP connection; returns a plain socket for it, and the relay's sockets.

    ``host`` is the name in the server's certificate, None on the server's side. Raises `OSError`
    if the other side is not trusted or does not answer, and `ResourceExhausted` if no thread can
    be started.
    """
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for option, value in _KEEP_ALIVE.items():
        sock.setsockopt(socket.IPPROTO_TCP, option, value)
    sock.settimeout(SECONDS_TO_BEGIN)
    secured = context.wrap_socket(sock, server_side=host is None, server_hostname=host)
    ours, theirs = socket.socketpair()
    if not start_thread(lambda: _relay(secured, theirs)):
        raise ResourceExhausted("this process can start no thread for a connection")
    return ours, (theirs, secured)


def _relay(secured: ssl.SSLSocket, plain: socket.socket) -> None:
    """Copies bytes in both directions until one side ends the connection.

    Only this thread uses the TLS connection: OpenSSL does not allow concurrent reads and writes.
    """
    secured.setblocking(False)
    plain.setblocking(False)
    out, back = memoryview(b""), memoryview(b"")
    poll = select.poll()
    try:
        while True:
            poll.register(secured, (0 if back else select.POLLIN) | (select.POLLOUT if out else 0))
            poll.register(plain, (0 if out else select.POLLIN) | (select.POLLOUT if back else 0))
            if back or not secured.pending():
                poll.poll()
            with suppress(ssl.SSLWantReadError, ssl.SSLWantWriteError):
                if not back:
                    back = memoryview(secured.recv(_PIECE))
                    if not back:
                        return
            with suppress(BlockingIOError):
                back = back[plain.send(back) :] if back else back
            with suppress(BlockingIOError):
                if not out:
                    out = memoryview(plain.recv(_PIECE))
                    if not out:
                        return
            with suppress(ssl.SSLWantReadError, ssl.SSLWantWriteError):
                out = out[secured.send(out) :] if out else out
    except (OSError, ValueError):  # the other side has ended, or the sockets were closed
        pass
    finally:
        with suppress(OSError):
            secured.shutdown(socket.SHUT_RDWR)
        secured.close()
        plain.close()
