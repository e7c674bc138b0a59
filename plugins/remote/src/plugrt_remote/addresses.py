"""Addresses of servers: ``unix:PATH``."""

from __future__ import annotations

import os
import socket
import struct

from plugrt.errors import ConfigError, PermissionDenied, Unavailable

_BUFFERS = 1 << 20


def socket_path(address: str) -> str:
    """Returns the path of ``unix:PATH``; raises `ConfigError` for other addresses."""
    kind, _, path = address.partition(":")
    if kind != "unix" or not path:
        raise ConfigError(
            f"{address!r} is not an address of a device server; it is unix:PATH, the socket that "
            "`plugrt serve --bind unix:PATH` makes"
        )
    return path


def connect(address: str) -> socket.socket:
    """Returns a socket that is connected to the server of this user, or of root.

    Raises `Unavailable` where none listens, and `PermissionDenied` where another user's does.
    """
    path = socket_path(address)
    sock = socket.socket(socket.AF_UNIX)
    try:
        set_buffers(sock)
        sock.connect(path)
        if peer_user(sock) not in (os.geteuid(), 0):
            raise PermissionDenied(
                f"the device server at {address} belongs to the user {peer_user(sock)}, and this "
                f"process to {os.geteuid()}"
            )
    except OSError as error:
        sock.close()
        raise Unavailable(
            f"no device server answers at {address} ({error.strerror or error}); "
            f"`plugrt serve --bind {address}` starts one"
        ) from None
    except BaseException:
        sock.close()
        raise
    return sock


def set_buffers(sock: socket.socket) -> None:
    """Sets the sizes of a socket's buffers, so that many launches are sent without waiting."""
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        sock.setsockopt(socket.SOL_SOCKET, option, _BUFFERS)


def peer_user(sock: socket.socket) -> int:
    """Returns the user id of the process at the other end of a Unix socket."""
    form = struct.Struct("3i")
    credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, form.size)
    return int(form.unpack(credentials)[1])
