"""`ServiceRelay`: a process between jaxlib's client and the coordination service.

jaxlib ends a process whose connection to the service breaks ("Terminating process"), and accepts no
Python callback for that. So its client connects to a child of the process, which keeps that
connection open when the one to the service is gone, and ends with its parent. Run as a program this
module is that child; it then imports only the standard library.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading

_CHUNK = 1 << 16


class ServiceRelay:
    """The child, for its parent."""

    def __init__(self, service: str) -> None:
        """``service`` is the host:port of the service. Raises `OSError` if there is no child."""
        # Not a port: gRPC would request it from a proxy of the environment, and others could
        # connect.
        self._folder = tempfile.TemporaryDirectory(prefix="plugrt-")
        path = os.path.join(self._folder.name, "relay")
        # -I and -S: neither site-packages nor variables, so that it starts in milliseconds.
        self._child = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, path, service],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            start_new_session=True,  # Ctrl-C and the end of a terminal are for the parent
        )  # fmt: skip
        if self._child.stdout is None:
            raise AssertionError("it is a pipe")
        ready = self._child.stdout.readline()
        self._child.stdout.close()
        if not ready:
            self.close()
            raise OSError(
                f"the process that keeps the connection to the coordinator ({__file__}) ended "
                f"with status {self._child.returncode} before it listened at {path}"
            )
        self.address = f"unix:{path}"
        """The address that jaxlib's client connects to."""

    def close(self) -> None:
        """Ends the child; jaxlib's client must be disconnected before."""
        if self._child.stdin is not None:
            self._child.stdin.close()
        self._child.wait()
        self._folder.cleanup()


def main(path: str, service: str) -> None:
    """Relays connections from a path to a service until standard input closes."""
    host, _, port = service.rpartition(":")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    place = (host.strip("[]"), int(port))
    threading.Thread(target=_accept, args=(listener, place), daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()  # until the parent closes it or ends
    shutil.rmtree(os.path.dirname(path), ignore_errors=True)
    os._exit(0)  # the threads wait in native code


def _accept(listener: socket.socket, service: tuple[str, int]) -> None:
    while True:
        client, _ = listener.accept()
        threading.Thread(target=_relay, args=(client, service), daemon=True).start()


def _relay(client: socket.socket, service: tuple[str, int]) -> None:
    """Relays both directions of a client until it closes the connection."""
    server = None
    try:
        server = socket.create_connection(service)
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=_answer, args=(server, client), daemon=True).start()
    except OSError:  # the service is gone: then the client gets no data
        pass
    while said := _receive(client):
        try:
            if server is not None:
                server.sendall(said)
        except OSError:
            server = None
    if server is not None:
        server.close()
    client.close()


def _answer(server: socket.socket, client: socket.socket) -> None:
    """Relays the service's data; after their end, the client's connection stays open."""
    while said := _receive(server):
        try:
            client.sendall(said)
        except OSError:
            return


def _receive(end: socket.socket) -> bytes:
    try:
        return end.recv(_CHUNK)
    except OSError:
        return b""


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
