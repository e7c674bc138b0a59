"""Addresses of servers, ``unix:PATH`` and ``tls://HOST:PORT``, and connections to them."""

from __future__ import annotations

import os
import socket
import ssl
import struct
from typing import NamedTuple

from plugrt.errors import ConfigError, PermissionDenied, Unavailable
from plugrt_remote import tls

_BUFFERS = 1 << 20
AUTHORITY, TOKEN_FILE = "PLUGRT_REMOTE_CA", "PLUGRT_REMOTE_TOKEN_FILE"
"""Environment variables with paths of files that a client of ``tls://`` needs."""


class Address(NamedTuple):
    """The path of a Unix socket, or a host and a port."""

    path: str = ""
    host: str = ""
    port: int = 0


class Link(NamedTuple):
    """A connected socket, the token to send to the server, and the sockets of the relay."""

    sock: socket.socket
    token: bytes = b""
    relay: tuple[socket.socket, ...] = ()
    same_machine: bool = True


def parse(address: str) -> Address:
    """Parses ``unix:PATH`` or ``tls://HOST:PORT``; raises `ConfigError` for other text."""
    kind, _, rest = address.partition(":")
    if kind == "unix" and rest:
        return Address(path=rest)
    host, _, port = rest.removeprefix("//").rpartition(":")
    if kind == "tls" and rest.startswith("//") and host and port.isdecimal():
        return Address(host=host.strip("[]"), port=int(port))
    plain = "; connections without TLS are not offered" if kind == "tcp" else ""
    raise ConfigError(
        f"{address!r} is not an address of a device server; it is unix:PATH, the socket that "
        f"`plugrt serve --bind unix:PATH` makes, or tls://HOST:PORT{plain}"
    )


_FILES = " --certificate FILE --key FILE --token-file FILE"


def connect(address: str) -> Link:
    """Connects to a server; on this machine it must run as this user or as root.

    Raises `Unavailable` if no server listens, and `PermissionDenied` if another user runs it or its
    certificate is not signed by the authority in PLUGRT_REMOTE_CA. Raises `ConfigError` if
    PLUGRT_REMOTE_CA or PLUGRT_REMOTE_TOKEN_FILE does not name a usable file.
    """
    parsed = parse(address)
    try:
        return _connect_here(parsed.path, address) if parsed.path else _connect_there(parsed)
    except ssl.SSLCertVerificationError as error:
        raise PermissionDenied(
            f"the certificate of the device server at {address} is not signed by {AUTHORITY}: "
            f"{error.verify_message}"
        ) from None
    except OSError as error:
        raise Unavailable(
            f"no device server answers at {address} ({error.strerror or error}); "
            f"`plugrt serve --bind {address}{_FILES if not parsed.path else ''}` starts one"
        ) from None


def _connect_here(path: str, address: str) -> Link:
    sock = socket.socket(socket.AF_UNIX)
    try:
        set_buffers(sock)
        sock.connect(path)
        if peer_user(sock) not in (os.geteuid(), 0):
            raise PermissionDenied(
                f"the device server at {address} is run by the user {peer_user(sock)}, and this "
                f"process by {os.geteuid()}"
            )
    except BaseException:
        sock.close()
        raise
    return Link(sock)


def _connect_there(address: Address) -> Link:
    for variable in (AUTHORITY, TOKEN_FILE):
        if not os.environ.get(variable):
            raise ConfigError(
                f"{variable} is not set: a connection by tls:// needs the certificate of the "
                f"server's authority ({AUTHORITY}) and the server's token ({TOKEN_FILE})"
            )
    context = tls.client_context(os.environ[AUTHORITY])
    token = tls.read_token(os.environ[TOKEN_FILE])
    sock = socket.create_connection((address.host, address.port), tls.SECONDS_TO_BEGIN)
    try:
        ours, relay = tls.begin(sock, context, address.host)
    except BaseException:
        sock.close()
        raise
    return Link(ours, token, relay, same_machine=False)


def set_buffers(sock: socket.socket) -> None:
    """Sets the sizes of a socket's buffers, so that many launches are sent without waiting."""
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        sock.setsockopt(socket.SOL_SOCKET, option, _BUFFERS)


def peer_user(sock: socket.socket) -> int:
    """Returns the user id of the process at the other end of a Unix socket."""
    return _credentials(sock)[1]


def peer_process(sock: socket.socket) -> int:
    """Returns the id of the process at the other end of a Unix socket."""
    return _credentials(sock)[0]


def _credentials(sock: socket.socket) -> tuple[int, ...]:
    form = struct.Struct("3i")
    return form.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, form.size))
