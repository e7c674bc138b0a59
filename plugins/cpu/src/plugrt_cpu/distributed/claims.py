"""`Claims`: the coordinator assigns indices to processes, before jaxlib connects.

In jaxlib's service a second process with an index replaces the first, whose run it ends. So the
coordinator itself listens at its address: a process requests an index there, and gets the port of
jaxlib's service, or the name of the process with the index. Later bytes are echoed, as long as the
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

from plugrt.errors import DataLoss
from plugrt_cpu.distributed.claim_messages import (
    LONGEST,
    LONGEST_NAME,
    PATIENCE,
    About,
    Answer,
    Challenge,
    Claim,
    Hello,
    Question,
    is_proven,
    make_nonce,
    prove,
    read,
    write,
)

_PAUSE = 0.2
"""Seconds without accepting if no more files can be opened and no stranger can be dropped."""
_STRANGERS = 64
"""The number of connections without an index that are kept beside one for each process."""
_OUT_OF_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


@dataclass(eq=False)
class _Caller:
    """A connection, with its received bytes and the nonces."""

    connection: socket.socket
    until: float
    """The time at which it is dropped if it has no index by then."""
    received: bytes = b""
    nonces: tuple[str, str] | None = None
    index: int | None = None
    ended: bool = False


class Claims:
    """The coordinator's side: the process of each index.

    A connection stays open as long as its process lives. An index is free again if its process
    ended before all had joined, and is not given again afterwards. A connection without an index
    has a few seconds to get one, and is dropped earlier if there are too many.
    """

    def __init__(
        self,
        listener: socket.socket,
        num_processes: int,
        service_port: int,
        secret: str | None = None,
        patience: float = PATIENCE,
    ) -> None:
        self._listener, self._count, self._port = listener, num_processes, service_port
        self._secret, self._patience = secret, patience
        self._selector = selectors.DefaultSelector()
        self._holders: dict[int, str] = {}
        self._strangers: dict[_Caller, None] = {}
        """The connections without an index, the oldest first."""
        # jaxlib's service is in this process, and needs files as well.
        most_files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self._most_strangers = max(4, min(num_processes + _STRANGERS, most_files // 4))
        self._accept_at: float | None = None

    def serve(self) -> None:
        """Answers until the process ends."""
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
        """Returns the seconds until the next action if no message arrives."""
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
            return  # otherwise the caller has left
        connection.setblocking(False)
        caller = _Caller(connection, time.monotonic() + self._patience)
        self._strangers[caller] = None
        self._selector.register(connection, selectors.EVENT_READ, caller)
        if len(self._strangers) > self._most_strangers:
            self._drop_first()

    def _drop_first(self) -> bool:
        """Drops the oldest connection without an index, if there is one."""
        first = next(iter(self._strangers), None)
        if first is not None:
            self._forget(first)
        return first is not None

    def _hear(self, caller: _Caller) -> None:
        try:
            received = caller.connection.recv(LONGEST)
            if caller.index is not None:  # its process checks that the coordinator lives
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
            return Answer("this is the coordinator of a run of plugrt's processes")
        if not is_proven(self._secret, caller.nonces, question):
            return Answer("its secret is another one")
        if isinstance(question, About):
            return Answer(holder=self._holders.get(question.about, ""))
        return self._settle(caller, question)

    def _settle(self, caller: _Caller, asked: Claim) -> Answer:
        index, count = asked.index, self._count
        if asked.count != count:
            return Answer(
                f"process {index} has num_processes={asked.count}, and the coordinator has "
                f"{count}: all processes of a run need the same number"
            )
        if index >= count:
            return Answer(f"there is no process {index} of {count}")
        if index in self._holders:
            return Answer(
                f"process_id={index} is in use: {self._holders[index]} has it. Each of the "
                f"{count} processes needs an index of its own"
            )
        self._holders[index] = asked.name[:LONGEST_NAME]
        caller.index = index
        del self._strangers[caller]
        return Answer(service=self._port)

    def _forget(self, caller: _Caller) -> None:
        caller.ended = True
        self._strangers.pop(caller, None)
        self._selector.unregister(caller.connection)
        caller.connection.close()
        if caller.index is not None and len(self._holders) < self._count:
            del self._holders[caller.index]
