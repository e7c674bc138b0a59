"""The process that runs jaxlib's coordination service for `ChildCoordinator`.

Its first line of standard input has the settings. It ends by SIGTERM; without its parent, it
continues until no process is connected.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import socket
import sys
import threading
import time
from typing import Any

_LAST_SECONDS = 60.0
"""Seconds that it continues without its parent beyond the limit of heartbeats."""
_ESTABLISHED = "01"


def main() -> None:
    """Serves with the settings from standard input."""
    request = json.loads(sys.stdin.readline() or "null")
    if request is None:
        return  # the parent ended before it sent them
    host, _, port = request["address"].rpartition(":")
    try:
        listener = _listen(host.strip("[]"), int(port))
        with _listen(host.strip("[]"), 0) as probe:
            service_port = int(probe.getsockname()[1])
    except OSError as error:
        print(f"{error.strerror or error}", flush=True)
        return
    # It warns each time about the mode that keeps other processes after a loss.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    from plugrt_cpu import adapter
    from plugrt_cpu.distributed.claims import Claims

    _raise_descriptor_limit()
    count = request["num_processes"]
    service = adapter.make_coordination_service(
        f"{host}:{service_port}",
        count,
        heartbeat_seconds=request["heartbeat_timeout"],
        shutdown_seconds=request["shutdown_timeout"],
    )
    claims = Claims(listener, count, service_port, request["secret"])
    threading.Thread(target=claims.serve, name="claims", daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()  # until the parent closes it or ends
    _await_last_connection(service_port, request["heartbeat_timeout"] + _LAST_SECONDS)
    del service
    os._exit(0)  # otherwise it would first answer requests of open connections


def _listen(host: str, port: int) -> socket.socket:
    """Returns a socket that listens there; raises `OSError` if that is impossible.

    jaxlib's service would not report it: it shares a port that another one has.
    """
    [family, _, _, _, place], *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    both = family == socket.AF_INET6 and place[0] == "::" and socket.has_dualstack_ipv6()
    return socket.create_server(place[:2], family=family, dualstack_ipv6=both)


def _raise_descriptor_limit() -> None:
    """Raises the limit of open files to this user's maximum: each process of the run needs two."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):  # macOS: less than the stated limit
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _await_last_connection(port: int, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until and _has_connections(port):
        time.sleep(0.2)


def _has_connections(port: int) -> bool:
    """Whether a process is connected to a port of this machine (as Linux lists it)."""
    for table in ("/proc/self/net/tcp", "/proc/self/net/tcp6"):
        try:
            with open(table, encoding="ascii") as file:
                rows: list[Any] = [line.split() for line in file][1:]
        except OSError:
            continue
        for row in rows:
            if int(row[1].rpartition(":")[2], 16) == port and row[3] == _ESTABLISHED:
                return True
    return False


if __name__ == "__main__":
    main()
