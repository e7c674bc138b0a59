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
from plugrt_remote.pending import Call, Pending, Watched
from plugrt_remote.segment_pool import SegmentPool
from plugrt_remote.sender import Sender
from plugrt_remote.wire import Op, frame

_MANY = 32
"""So many dropped arrays are freed together: a message for each costs a fifth of a launch."""
_WINDOW = 1024
"""Launches after which the client waits for the server once."""
_JOINED = 64 << 10
"""A payload of at most so many bytes is sent in one piece with its header."""


class Connection:
    """Sends requests and receives answers.

    The thread that waits for an answer receives what comes; once somebody has asked for calls at
    the end of work (`start_threads`), threads of the connection receive instead. Finalisers
    append numbers of arrays to ``dead``, and send nothing: a later message has these numbers.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self._link = link = connect(address)
        self.sock = link.sock
        self.lost: PjrtError | None = None
        """What calls raise since the connection has ended, or in a forked child."""
        self.explain: Callable[[], str] | None = None
        """Returns why the connection has ended, where somebody knows more than its socket."""
        self.received = 0
        """The number of messages that have come."""
        self.dead: deque[int] = deque()
        self.drops_now = False
        """Whether the next message frees the arrays in ``dead``, although they are few."""
        self._pending = Pending()
        self.watched = self._pending.watched
        self.notices = False
        """Whether launches ask for a notice of their end at once."""
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
        self._threads = self._since = 0
        self.closed = False
        self._on_lost: deque[Callable[[PjrtError], object]] = deque()
        _alive.add(self)

    def greet(self) -> Any:
        """Returns the facts that the server begins with."""
        hello = wire.HELLO.pack(wire.MAGIC, wire.VERSION) + self._link.token
        return self.ask(Op.HELLO, hello).result

    def numbers(self, count: int = 1) -> int:
        """Returns the first of ``count`` new numbers, of arrays, programs or requests."""
        with self._numbering:
            first = self._next
            self._next = first + count
        return first

    def post(self, message: bytes, payload: Any = None) -> None:
        """Sends a message without an answer; it also frees the arrays in ``dead``, once many.

        Raises `Unavailable` once the connection is lost.
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
            if view.nbytes <= _JOINED:
                parts = [message + view]
            else:
                parts.append(view)
        self._send(parts)

    def _send(self, parts: list[Any], *descriptors: int) -> None:
        try:
            self._sender.send(parts, descriptors)
        except OSError as error:
            self.lose(error)
            self.refuse()

    def refuse(self) -> NoReturn:
        """Raises why the connection is lost."""
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
            self._await(call)
        finally:
            self._calls.pop(number, None)
        if call.error is not None:
            raise call.error
        return call

    @property
    def waits(self) -> bool:
        """Whether anything that was asked is not answered, or not even sent."""
        return bool(self._calls or self.watched or self._sender.unsent)

    def pace(self) -> None:
        """Waits for the server once in many launches, so that it is not far behind."""
        self._since += 1
        if self._since >= _WINDOW:
            self._since = 0
            self.ask(Op.PING, b"")

    def _await(self, call: Call) -> None:
        while not call.done:
            if self._threads:
                event = call.event = threading.Event()
                if not call.done:
                    event.wait()
                return
            with self._reading:
                while not call.done and not self._threads:
                    self.receive()

    def wait(self, event: Watched) -> None:
        """Receives until an event is ready."""
        while not event.ready:
            if self._threads:
                event.wait_for_notice()
            else:
                with self._reading:
                    while not event.ready and not self._threads:
                        self.receive()

    def receive(self) -> Callable[[], None] | None:
        """Waits for one message and handles it; returns a function to call then, or None.

        After an interruption the next call handles the message again, which changes nothing.
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
        """Takes what has come, without waiting."""
        if not self._threads and self._reading.acquire(blocking=False):
            try:
                while self.lost is None and (
                    self._reader.has_more() or select.select([self.sock], [], [], 0)[0]
                ):
                    self.receive()
            finally:
                self._reading.release()

    def start_threads(self) -> None:
        """Has threads of the connection receive from now on.

        One receives, and calls what is to be called for the message without the lock: such a
        function may read arrays, which another of the threads then receives.
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
        """Notes that the connection has ended: who waits gets `Unavailable`, as later calls do."""
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
        """Ends the connection; the server frees what it holds for it."""
        self.closed = True
        self.lose(ConnectionError("the client was closed"))
        with suppress(OSError):  # the server has ended it
            self.sock.shutdown(socket.SHUT_RDWR)
        if not self._threads:  # else a thread may be receiving: the socket ends with the last
            self.sock.close()

    def abandon(self) -> None:
        """Leaves the connection to the parent, in a forked child: calls are refused from now on.

        Other threads of the parent may have held the locks.
        """
        self.lost = FailedPrecondition(
            f"the connection to the device server at {self.address} {FORKED}"
        )
        for sock in (self.sock, *self._link.relay):
            sock.close()
        self._sender, self._threads = Sender(self.sock), 0
        self._reading, self._numbering = threading.Lock(), threading.Lock()


# Process-wide: a fork gives its child all connections of the process.
_alive: WeakSet[Connection] = WeakSet()


@call_in_child
def _abandon_all() -> None:
    for connection in list(_alive):
        connection.abandon()
    _alive.clear()
