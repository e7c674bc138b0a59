"""Claims of process indices, settled before jaxlib connects: `Claims` serves them, `claim` asks.

In jaxlib's service the second process of an index takes the place of the first, whose run it ends.
So the coordinator listens at its address itself: a process says there which index it wants, and
hears the port of jaxlib's service, or who has the index. Later bytes are echoed, as long as the
coordinator lives.
"""

from __future__ import annotations

import errno
import itertools
import resource
import selectors
import socket
import time
from dataclasses import dataclass
from typing import Any

from plugrt.errors import DataLoss, DistributedError, describe, escape_controls
from plugrt.plugins.coordination import Membership
from plugrt_cpu.claim_messages import (
    LONGEST,
    LONGEST_NAME,
    About,
    Answer,
    Challenge,
    Claim,
    Fault,
    Granted,
    Hello,
    Holder,
    OtherCount,
    Question,
    Taken,
    is_proven,
    make_nonce,
    prove,
    read,
    with_proof,
    write,
)

_INTERVAL = 1.0
_SHARE = 0.3
"""How much of the time without heartbeats a coordinator may be silent: jaxlib ends at half."""
_PATIENCE = 10.0
"""Seconds that a connection has to get an index, and a coordinator to answer."""
_PAUSE = 0.2
"""How long nothing is accepted where no more files can be opened and no stranger can be dropped."""
_STRANGERS = 64
"""How many connections that have no index are kept beside one for each process."""
_TRIES = 5
"""How often a process connects anew where the coordinator dropped it for later connections."""
_OUT_OF_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


@dataclass(eq=False)
class _Caller:
    """A connection, with the bytes and the nonces that came by it."""

    connection: socket.socket
    until: float
    """When it is dropped, if it has no index by then."""
    received: bytes = b""
    nonces: tuple[str, str] | None = None
    index: int | None = None
    ended: bool = False


class _Dropped(DistributedError):
    """The connection was closed without an answer."""


class Claims:
    """The coordinator's side: who has which index.

    A connection stays open as long as its process lives. An index is free again when its process
    has ended before all had come, and nobody's afterwards. A connection without an index has a few
    seconds to get one, and is dropped earlier where there are too many.
    """

    def __init__(
        self,
        listener: socket.socket,
        num_processes: int,
        service_port: int,
        secret: str | None = None,
        patience: float = _PATIENCE,
    ) -> None:
        self._listener, self._count, self._port = listener, num_processes, service_port
        self._secret, self._patience = secret, patience
        self._selector = selectors.DefaultSelector()
        self._holders: dict[int, str] = {}
        self._strangers: dict[_Caller, None] = {}
        """Who has no index, the one that came first in front."""
        # jaxlib's service is in this process, and needs files as well.
        most_files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self._most_strangers = max(4, min(num_processes + _STRANGERS, most_files // 4))
        self._accept_at: float | None = None

    def serve(self) -> None:
        """Answers for as long as the process lives."""
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ)
        while True:
            for key, _ in self._selector.select(self._seconds_left()):
                if key.data is None:
                    self._accept()
                elif not key.data.ended:
                    self._hear(key.data)
            now = time.monotonic()
            for caller in [*self._strangers]:
                if caller.until > now:
                    break
                self._forget(caller)
            if self._accept_at is not None and now >= self._accept_at:
                self._accept_at = None
                self._selector.register(self._listener, selectors.EVENT_READ)

    def _seconds_left(self) -> float | None:
        """Returns how long nothing need be done unless somebody says something."""
        times = [caller.until for caller in itertools.islice(self._strangers, 1)]
        if self._accept_at is not None:
            times.append(self._accept_at)
        return max(0.0, min(times) - time.monotonic()) if times else None

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError as error:
            if error.errno in _OUT_OF_FILES and not self._drop_first():
                self._accept_at = time.monotonic() + _PAUSE
                self._selector.unregister(self._listener)
            return  # otherwise whoever called has gone again
        connection.setblocking(False)
        caller = _Caller(connection, time.monotonic() + self._patience)
        self._strangers[caller] = None
        self._selector.register(connection, selectors.EVENT_READ, caller)
        if len(self._strangers) > self._most_strangers:
            self._drop_first()

    def _drop_first(self) -> bool:
        """Drops the connection that has been without an index for longest, if there is one."""
        first = next(iter(self._strangers), None)
        if first is not None:
            self._forget(first)
        return first is not None

    def _hear(self, caller: _Caller) -> None:
        try:
            received = caller.connection.recv(LONGEST)
            if caller.index is not None:  # its process asks whether the coordinator lives
                caller.connection.sendall(received)
                goes_on = bool(received)
            else:
                caller.received += received
                goes_on = bool(received) and len(caller.received) <= LONGEST
                if goes_on and caller.received.endswith(b"\n"):
                    line, caller.received = caller.received, b""
                    caller.connection.sendall(write(self._reply(caller, line)))
        except OSError:
            goes_on = False
        if not goes_on:
            self._forget(caller)

    def _reply(self, caller: _Caller, line: bytes) -> Challenge | Answer:
        try:
            if caller.nonces is None:
                hello: Hello = read(Hello, line)
                caller.nonces = hello.nonce, make_nonce()
                return Challenge(
                    caller.nonces[1], prove(self._secret, "coordinator", caller.nonces)
                )
            question: Question = read(Question, line)
        except DataLoss:
            return Fault("this is the coordinator of a run of plugrt's processes")
        if not is_proven(self._secret, caller.nonces, question):
            return Fault("the secret is another one")
        if isinstance(question, About):
            return Holder(self._holders.get(question.about, ""))
        return self._settle(caller, question)

    def _settle(self, caller: _Caller, asked: Claim) -> Answer:
        if asked.count != self._count:
            return OtherCount(self._count)
        if asked.index >= asked.count:
            return Fault(f"there is no process {asked.index} of {asked.count}")
        if asked.index in self._holders:
            return Taken(self._holders[asked.index])
        self._holders[asked.index] = asked.name[:LONGEST_NAME]
        caller.index = asked.index
        del self._strangers[caller]
        return Granted(self._port)

    def _forget(self, caller: _Caller) -> None:
        caller.ended = True
        self._strangers.pop(caller, None)
        self._selector.unregister(caller.connection)
        caller.connection.close()
        if caller.index is not None and len(self._holders) < self._count:
            del self._holders[caller.index]


def claim(membership: Membership) -> tuple[socket.socket, str]:
    """Returns the connection that keeps a process's index, and the address of jaxlib's service.

    Raises `DistributedError` where another process has the index, where the coordinator has another
    number of processes or another secret, and where something else listens at the address.
    """
    me, count, address = membership.process_id, membership.num_processes, membership.address
    question = Claim(me, count, membership.name[:LONGEST_NAME])
    for tries_left in reversed(range(_TRIES)):
        connection = _connect(membership, membership.initialization_timeout)
        try:
            answer = _ask(connection, membership, question)
            break
        except _Dropped:
            connection.close()
            if not tries_left:
                raise
            time.sleep(_PAUSE)
        except BaseException:
            connection.close()
            raise
    try:
        if isinstance(answer, Granted):
            return connection, f"{address.rpartition(':')[0]}:{answer.service}"
        if isinstance(answer, Taken):
            raise DistributedError(
                f"process_id={me} is taken: {escape_controls(answer.taken)} has it. Each of the "
                f"{count} processes needs an index of its own"
            )
        if isinstance(answer, OtherCount):
            raise DistributedError(
                f"process {me} was told of num_processes={count}, and the coordinator at {address} "
                f"of {answer.count}: all processes of a run are told the same number"
            )
        raise _no_coordinator(address, repr(answer))
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
            if not connection.recv(LONGEST):
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
    try:
        with _connect(membership, _PATIENCE) as connection:
            answer = _ask(connection, membership, About(membership.process_id))
    except (OSError, DistributedError):
        return None
    return escape_controls(answer.has) if isinstance(answer, Holder) else None


def _connect(membership: Membership, seconds: float) -> socket.socket:
    host, _, port = membership.address.rpartition(":")
    return socket.create_connection((host.strip("[]"), int(port)), timeout=seconds)


def _ask(connection: socket.socket, membership: Membership, question: Question) -> Answer:
    """Returns what the coordinator answers, once both have proven that they know the secret."""
    address, secret, nonce = membership.address, membership.secret, make_nonce()
    challenge: Challenge = _exchange(connection, address, Hello(nonce), Challenge)
    nonces = nonce, challenge.challenge
    if challenge.proof != prove(secret, "coordinator", nonces):
        has = "another secret" if secret else "a secret, and this process was given none"
        if not challenge.proof:
            has = "no secret, and this process was given one"
        raise DistributedError(
            f"the coordinator at {address} has {has}: all processes of a run have the same "
            "(PLUGRT_COORDINATOR_SECRET, or initialize(secret=...)), or none has one"
        )
    answer: Answer = _exchange(connection, address, with_proof(secret, nonces, question), Answer)
    return answer


def _exchange(connection: socket.socket, address: str, said: object, kind: Any) -> Any:
    """Says a message and returns the answer, of a kind of messages."""
    received = b""
    try:
        connection.sendall(write(said))
        while not received.endswith(b"\n") and len(received) <= LONGEST:
            more = connection.recv(LONGEST)
            if not more:
                break
            received += more
        return read(kind, received)
    except (OSError, DataLoss) as error:
        shown = f"{received[:80]!r} ({describe(error)})"
        raise _no_coordinator(address, shown, _Dropped if not received else None) from error


def _no_coordinator(
    address: str, answer: str, kind: type[DistributedError] | None = None
) -> DistributedError:
    return (kind or DistributedError)(
        f"what listens at {address} is no coordinator of plugrt: it answered {answer}; choose "
        "another coordinator_address, the same for all processes"
    )
