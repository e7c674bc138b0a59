"""Claims of process indices, settled before jaxlib connects: `Claims` serves them, `claim` asks.

In jaxlib's service the second process of an index takes the place of the first, whose run it ends.
So the coordinator listens at its address itself: a process says there which index it wants, and is
told the port of jaxlib's service, or who has the index. One line of JSON goes each way. What is
said afterwards comes back as it is, as long as the coordinator lives.
"""

from __future__ import annotations

import json
import selectors
import socket
import time
from typing import Any

from plugrt.errors import DistributedError, describe
from plugrt.plugins.coordination import Membership

_LONGEST = 4096
_INTERVAL = 1.0
_SHARE = 0.3
"""How much of the time without heartbeats a coordinator may be silent: jaxlib ends at half."""
_PATIENCE = 10.0
"""How long what listens at the coordinator's address may take to say what it is."""


class Claims:
    """The coordinator's side: who has which index.

    A connection stays open as long as its process lives. An index is free again when its process
    has ended before all had come, and nobody's afterwards.
    """

    def __init__(self, listener: socket.socket, num_processes: int, service_port: int) -> None:
        self._listener, self._count, self._port = listener, num_processes, service_port
        self._selector = selectors.DefaultSelector()
        self._holders: dict[int, str] = {}
        self._claimed: dict[socket.socket, int] = {}
        self._read: dict[socket.socket, bytes] = {}

    def serve(self) -> None:
        """Answers for as long as the process lives."""
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ)
        while True:
            for key, _ in self._selector.select():
                connection = key.fileobj
                if connection is self._listener:
                    self._accept()
                elif isinstance(connection, socket.socket):
                    self._hear(connection)

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:  # whoever called has gone again
            return
        connection.setblocking(False)
        self._read[connection] = b""
        self._selector.register(connection, selectors.EVENT_READ)

    def _hear(self, connection: socket.socket) -> None:
        try:
            received = connection.recv(_LONGEST)
        except OSError:
            received = b""
        if connection in self._claimed:  # its process asks whether the coordinator lives
            line = answer = received
        else:
            self._read[connection] += received
            line, answer = self._read[connection], b""
            if received and line.endswith(b"\n"):
                answer = json.dumps(self._answer(connection, line)).encode() + b"\n"
        try:
            connection.sendall(answer)
        except OSError:
            received = b""
        if not received or len(line) > _LONGEST:
            self._forget(connection)

    def _answer(self, connection: socket.socket, line: bytes) -> dict[str, Any]:
        try:
            asked = json.loads(line)
            if "about" in asked:
                return {"has": self._holders.get(int(asked["about"]), "")}
            index, count, name = int(asked["index"]), int(asked["count"]), str(asked["name"])
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            return {"fault": "this is the coordinator of a run of plugrt's processes"}
        if count != self._count:
            return {"count": self._count}
        if not 0 <= index < count:
            return {"fault": f"there is no process {index} of {count}"}
        if index in self._holders:
            return {"taken": self._holders[index]}
        self._holders[index] = name
        self._claimed[connection] = index
        return {"service": self._port}

    def _forget(self, connection: socket.socket) -> None:
        self._selector.unregister(connection)
        connection.close()
        del self._read[connection]
        index = self._claimed.pop(connection, None)
        if index is not None and len(self._holders) < self._count:
            del self._holders[index]


def claim(membership: Membership) -> tuple[socket.socket, str]:
    """Returns the connection that keeps a process's index, and the address of jaxlib's service.

    Raises `DistributedError` where another process has the index, where the coordinator was told of
    another number of processes, and where something else listens at the address.
    """
    me, count, address = membership.process_id, membership.num_processes, membership.address
    host, _, port = address.rpartition(":")
    asked = {"index": me, "count": count, "name": membership.name}
    connection = socket.create_connection(
        (host.strip("[]"), int(port)), timeout=membership.initialization_timeout
    )
    try:
        connection.sendall(json.dumps(asked).encode() + b"\n")
        answer = _read_answer(connection)
        if "service" in answer:
            return connection, f"{host}:{int(answer['service'])}"
        if "taken" in answer:
            raise DistributedError(
                f"process_id={me} is taken: {answer['taken']} has it. Each of the {count} "
                "processes needs an index of its own"
            )
        if "count" in answer:
            raise DistributedError(
                f"process {me} was told of num_processes={count}, and the coordinator at {address} "
                f"of {answer['count']}: all processes of a run are told the same number"
            )
        raise DistributedError(
            f"what listens at {address} is no coordinator of plugrt: it answered "
            f"{answer.get('unknown', answer)}; choose another coordinator_address, the same for "
            "all processes"
        )
    except BaseException:
        connection.close()
        raise


def await_loss(connection: socket.socket, heartbeat: float) -> str:
    """Asks the coordinator again and again by a claim's connection; returns why it does not answer.

    That is before jaxlib's client ends the process, half of ``heartbeat`` seconds after the loss.
    """
    patience = heartbeat * _SHARE
    connection.settimeout(patience)
    try:
        while True:
            connection.sendall(b"\n")
            if not connection.recv(_LONGEST):
                raise ConnectionError("its connections are closed")
            time.sleep(min(_INTERVAL, patience / 4))
    except TimeoutError:
        return f"it has not answered for {patience:g} s"
    except OSError as error:
        return describe(error)


def find_holder(membership: Membership) -> str | None:
    """Returns who has this process's index at a coordinator of plugrt's; None if there is none.

    Empty as long as nobody has it.
    """
    host, _, port = membership.address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), _PATIENCE) as connection:
            connection.sendall(json.dumps({"about": membership.process_id}).encode() + b"\n")
            holder = _read_answer(connection).get("has")
    except OSError:
        return None
    return holder if isinstance(holder, str) else None


def _read_answer(connection: socket.socket) -> dict[str, Any]:
    """Returns what the coordinator answered; under ``unknown``, what something else did."""
    received = b""
    try:
        while not received.endswith(b"\n") and len(received) < _LONGEST:
            more = connection.recv(_LONGEST)
            if not more:
                break
            received += more
        answer = json.loads(received)
    except (OSError, ValueError) as error:
        return {"unknown": f"{received[:80]!r} ({error})"}
    return answer if isinstance(answer, dict) else {"unknown": f"{received[:80]!r}"}
