"""`Connection`: the client's side of a connection to a server."""

from __future__ import annotations

import select
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn
from weakref import WeakSet

from plugrt.errors import FailedPrecondition, PjrtError, Unavailable
from plugrt.lifetime.forks import FORKED, call_in_child
from plugrt.lifetime.thread_work import start_thread
from plugrt_remote import wire
from plugrt_remote.addresses import connect
from plugrt_remote.called_functions import CalledFunctions
from plugrt_remote.pending import Awaited, Call, Pending
from plugrt_remote.segment_pool import SegmentPool
from plugrt_remote.sender import Sender
from plugrt_remote.wire import Op, frame

_MANY = 32
"""Dropped arrays that one message frees: a message for each would cost a fifth of a launch."""
_WINDOW = 1024
"""Launches after which the client waits for an answer of the server."""
_JOINED = 64 << 10
"""The largest payload, in bytes, that is sent in one piece with its head."""


class Connection:
    """Sends requests and receives answers.

    The thread that waits for an answer receives the messages. After `start_threads`, which events
    with callbacks call, threads of the connection receive instead. Finalisers send nothing: they
    append numbers of arrays to ``dead``, which a later message sends.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self._link = link = connect(address)
        self.sock = link.sock
        self.lost: PjrtError | None = None
        """The error of calls once the connection has ended, or in a forked child."""
        self.explain: Callable[[], str] | None = None
        """Returns why the connection has ended; set if the server is a child process."""
        self.received = 0
        """The number of messages received."""
        self.dead: deque[int] = deque()
        self.drops_now = False
        """Whether the next message frees the arrays in ``dead``, although they are few."""
        self._pending = Pending()
        self.watched = self._pending.watched
        self.most_ahead = 256 << 20
        """Bytes sent after which the client waits for the server: less than its backlog's limit."""
        self.notices = False
        """Whether launches request a notice of their end."""
        self.segments: SegmentPool | None = None
        """None on a connection to another machine."""
        if link.same_machine:
            ping = partial(self.ask, Op.PING, b"")
            self.segments = SegmentPool(self._add_segment, self.poll, ping)
        self._reader = wire.FrameReader(self.sock, wire.FROM_SERVER)
        self._sender = Sender(self.sock)
        self.functions = CalledFunctions(self._send)
        self._reading = threading.Lock()
        self._numbering = threading.Lock()
        self._next = 1
        self._calls = self._pending.calls
        self._threads = self._since = self._sent_bytes = 0
        self.closed = False
        self._on_lost: deque[Callable[[PjrtError], object]] = deque()
        _alive.add(self)

    def greet(self) -> Any:
        """Sends the version and the token; returns the server's description of its backend."""
        hello = wire.HELLO.pack(wire.MAGIC, wire.VERSION) + self._link.token
        return self.ask(Op.HELLO, hello).result

    def numbers(self, count: int = 1) -> int:
        """Returns the first of ``count`` new numbers, of arrays, programs or requests."""
        with self._numbering:
            first = self._next
            self._next = first + count
        return first

    def post(self, message: bytes, payload: Any = None) -> None:
        """Sends a message, after one that frees the arrays in ``dead`` if that is due.

        Raises `Unavailable` once the connection is lost, and `FailedPrecondition` in a function
        that a program calls.
        """
        if self.lost is not None:
            self.refuse()
        if self.functions.threads and threading.get_ident() in self.functions.threads:
            self.functions.refuse()
        if self.dead and (self.drops_now or len(self.dead) >= _MANY):
            message = self._drop_dead() + message
        parts: list[Any] = [message]
        if payload is not None:
            view = memoryview(payload).cast("B")
            self._sent_bytes += view.nbytes
            if view.nbytes <= _JOINED:
                parts = [message + view]
            else:
                parts.append(view)
        self._send(parts)
        if self._sent_bytes >= self.most_ahead:
            self._sent_bytes = 0
            self.ask(Op.PING, b"")

    def _send(self, parts: list[Any], *descriptors: int) -> None:
        try:
            self._sender.send(parts, descriptors)
        except OSError as error:
            self.lose(error)
            self.refuse()

    def refuse(self) -> NoReturn:
        """Raises the error of the lost connection."""
        assert self.lost is not None
        raise type(self.lost)(self.lost.message) from None

    def _add_segment(self, size: int, descriptor: int) -> int:
        number = self.numbers()
        self._send([frame(Op.SEGMENT, wire.SEGMENT.pack(number, size))], descriptor)
        return number

    def _drop_dead(self) -> bytes:
        self.drops_now = False
        numbers = []
        while self.dead:
            numbers.append(self.dead.popleft())
            if len(numbers) == 1 << 16:
                break
        return frame(Op.DELETE, struct.pack(f"<i{len(numbers)}Q", wire.DROPPED, *numbers))

    def ask(self, op: int, body: bytes, payload: Any = None, number: int = 0) -> Call:
        """Sends a request, whose number precedes ``body``, and waits for its answer.

        Raises the error that the server answers, and `Unavailable` once the connection is lost.
        """
        call, number = Call(), number or self.numbers()
        self._calls[number] = call
        try:
            message = frame(
                op, wire.NUMBER.pack(number) + body, 0 if payload is None else len(payload)
            )
            self.drops_now = True
            self.post(message, payload)
            self.wait(call)
        finally:
            self._calls.pop(number, None)
        if call.error is not None:
            raise call.error
        return call

    @property
    def waits(self) -> bool:
        """Whether a request or an event waits for the server, or a message is partly unsent."""
        return bool(self._calls or self.watched or self._sender.unsent)

    def pace(self) -> None:
        """Counts a launch; after `_WINDOW` launches waits until the server has received them."""
        self._since += 1
        if self._since >= _WINDOW:
            self._since = 0
            self.ask(Op.PING, b"")

    def wait(self, awaited: Awaited) -> None:
        """Receives until an answer has come, or an event is ready."""
        while not awaited.ready:
            if self._threads:
                awaited.wait_for_notice()
            else:
                with self._reading:
                    while not awaited.ready and not self._threads:
                        self.receive()

    def receive(self) -> Callable[[], None] | None:
        """Waits for one message and handles it; returns a function for the caller to call, or None.

        After an interruption the next call handles the message again, without a further effect.
        """
        if self.lost is not None:
            self._pending.fail_all(self.lost)
            return None
        try:
            op, body, payload = self._reader.next()
            then = self._take(op, body, payload)
            self._reader.done()
            self.received += 1
        except (OSError, struct.error) as error:
            self.lose(error)
            return None
        return then

    def _take(self, op: int, body: bytes, payload: Any) -> Callable[[], None] | None:
        if op == Op.CALL:
            return self.functions.begin(body, payload)
        if op != Op.SEGMENT_FREE:
            return self._pending.take(op, body, payload)
        if self.segments is not None:
            self.segments.take_back(*wire.NUMBER.unpack_from(body))
        return None

    def poll(self) -> None:
        """Handles the messages that have arrived, without waiting."""
        if not self._threads and self._reading.acquire(blocking=False):
            try:
                while self.lost is None and (
                    self._reader.has_more() or select.select([self.sock], [], [], 0)[0]
                ):
                    self.receive()
            finally:
                self._reading.release()

    def start_threads(self) -> None:
        """Starts threads that receive from now on.

        One of them receives at a time, and releases the lock before it calls a function for the
        message: the function may read arrays, which another of the threads then receives.
        """
        if not self._threads:
            with self._reading:
                if not self._threads and self.lost is None:
                    for _ in range(3):
                        self._threads += start_thread(self._serve)

    def _serve(self) -> None:
        while self.lost is None:
            with self._reading:
                then = self.receive()
            if then is not None:
                then()

    def lose(self, error: BaseException) -> None:
        """Marks the connection as lost: calls that wait and later ones raise `Unavailable`."""
        if self.lost is None:
            if self.explain is None or self.closed:
                why = f"the device server at {self.address} has closed the connection ({error})"
                cure = "Start it again, and call plugrt.clear_backends()"
            else:
                why, cure = self.explain(), "plugrt.clear_backends() starts it again"
            self.lost = Unavailable(f"{why}. The arrays on its devices are lost. {cure}")
            self._tell_lost()
        self._pending.fail_all(self.lost)

    def on_lost(self, callback: Callable[[PjrtError], object]) -> None:
        """Calls ``callback(error)`` when the connection is lost, on a thread of its own."""
        self.start_threads()
        self._on_lost.append(callback)
        self._tell_lost()

    def _tell_lost(self) -> None:
        while self.lost is not None and not self.closed and self._on_lost:
            with suppress(IndexError):  # another thread took the last
                start_thread(partial(self._on_lost.popleft(), self.lost))

    def close(self) -> None:
        """Closes the connection; the server frees its arrays and programs."""
        self.closed = True
        self.lose(ConnectionError("the client was closed"))
        with suppress(OSError):  # the server has ended it
            self.sock.shutdown(socket.SHUT_RDWR)
        if not self._threads:  # else a thread may still receive from it
            self.sock.close()

    def abandon(self) -> None:
        """Closes a forked child's copies of the sockets; calls raise `FailedPrecondition` then.

        Replaces the locks, which other threads of the parent may have held at the fork.
        """
        self.lost = FailedPrecondition(
            f"the connection to the device server at {self.address} {FORKED}"
        )
        for sock in (self.sock, *self._link.relay):
            sock.close()
        self._sender, self._threads = Sender(self.sock), 0
        self._reading, self._numbering = threading.Lock(), threading.Lock()


# Process-wide: a forked child abandons all connections of its parent.
_alive: WeakSet[Connection] = WeakSet()


@call_in_child
def _abandon_all() -> None:
    for connection in list(_alive):
        connection.abandon()
    _alive.clear()
