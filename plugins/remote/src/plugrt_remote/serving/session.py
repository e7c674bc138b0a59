"""`Session`: one connection of a server, and the arrays and programs of its client."""

from __future__ import annotations

import hashlib
import hmac
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from plugrt.errors import Cancelled, DeletedBuffer, NotFound, PermissionDenied
from plugrt.interface import ExecuteOptions, Program
from plugrt_remote import wire
from plugrt_remote.addresses import peer_process
from plugrt_remote.log import logger
from plugrt_remote.segments import map_segment
from plugrt_remote.serving.answers import Answers
from plugrt_remote.serving.array_requests import ArrayRequests
from plugrt_remote.serving.arrays import Failed, SessionArrays
from plugrt_remote.serving.backend import ServedBackend
from plugrt_remote.serving.backlog import Backlog
from plugrt_remote.serving.callbacks import Callbacks
from plugrt_remote.serving.custom_calls import refuse_custom_calls
from plugrt_remote.serving.outbox import Outbox
from plugrt_remote.serving.programs import ServedProgram, read_options
from plugrt_remote.serving.turns import Turns
from plugrt_remote.tls import SECONDS_TO_BEGIN
from plugrt_remote.values import ProtocolError, pack, unpack
from plugrt_remote.wire import Op, frame

_MOST_PROGRAMS = 1 << 14


class Session:
    """One connection: receives and handles messages on a thread.

    If a message that is not answered fails, its results hold the error. A message that the protocol
    does not allow ends the session, which frees its arrays.
    """

    def __init__(
        self,
        backend: ServedBackend,
        sock: socket.socket,
        ended: Callable[[Session], object],
        *,
        same_machine: bool = True,
    ) -> None:
        self._backend, self._sock, self._ended = backend, sock, ended
        self._token = b"" if same_machine else backend.policy.token
        self._devices = {device.id: device for device in backend.client.addressable_devices()}
        self._reader = wire.FrameReader(sock, {}, fds=same_machine)
        self._outbox = Outbox(sock)
        self._send = self._outbox.send
        self.arrays = SessionArrays(backend.policy.session_bytes)
        self._answers = answers = Answers(backend, self.arrays, self._send)
        self._answer, self._refuse = answers.answer, answers.refuse
        self.segments = answers.segments
        self._programs: dict[int, ServedProgram] = {}
        requests = ArrayRequests(
            backend.client, self.arrays, self.segments, self._send, self._programs
        )
        self._callbacks = Callbacks(self._send, backend.policy.callback_seconds)
        self._backlog = Backlog(backend.policy.backlog_bytes, self._callbacks.relieve)
        self._worker: threading.Thread | None = None
        self._turns = Turns(backend.turns)
        backend.turns.append(self._turns)
        self._launches = 0
        self._since = time.monotonic()
        self._peer = peer_process(sock) if same_machine else 0
        self._greeted = False
        self._table: dict[int, Callable[[bytes, Any], None]] = {
            Op.HELLO: self._hello,
            Op.COMPILE: self._compile,
            Op.EXECUTE: self._execute,
            Op.PUT: requests.put,
            Op.READ: answers.read,
            Op.WAIT: answers.wait,
            Op.WATCH: answers.watch,
            Op.DELETE: requests.delete,
            Op.JOIN: requests.join,
            Op.COPY: requests.copy,
            Op.ASK: self._ask,
            Op.STATS: self._stats,
            Op.STATUS: self._status,
            Op.PING: self._ping,
            Op.SEGMENT: self._segment,
            Op.RETURN: self._callbacks.take,
            Op.CANCEL: self._cancel,
        }

    def run(self) -> None:
        """Serves the client until its connection ends, then frees its arrays and programs."""
        self._sock.settimeout(SECONDS_TO_BEGIN)
        try:
            self._handle_all(self._receive)
        finally:
            self._close()

    def _receive(self) -> tuple[int, bytes, Any]:
        """Returns the next message for this thread; adds those for the worker to its backlog."""
        reader = self._reader
        while True:
            op, body, payload = reader.next()
            reader.done()
            if (not self._greeted and op != Op.HELLO) or op not in self._table:
                raise ProtocolError(f"the message {op} is not allowed here")
            if self._worker is None or op in (Op.RETURN, Op.CANCEL):
                return op, body, payload
            self._backlog.add(op, body, payload)

    def _start_worker(self) -> None:
        """Starts a thread that handles all messages but results of functions and cancellations.

        That thread can wait for a function, if a backend calls it on the thread that launches, and
        for the session's turn, while the reading thread receives these two.
        """
        if self._worker is None:
            self._worker = threading.Thread(target=self._work, daemon=True, name="plugrt-worker")
            self._worker.start()

    def _work(self) -> None:
        self._handle_all(self._backlog.take)
        self._outbox.close()  # ends the reading thread, too

    def _handle_all(self, take: Callable[[], tuple[int, bytes, Any] | None]) -> None:
        """Handles messages until there are no more, or the session ends."""
        table = self._table
        try:
            while (message := take()) is not None:
                op, body, payload = message
                try:
                    table[op](body, payload)
                except (struct.error, ValueError, TypeError) as error:
                    raise ProtocolError(f"the message {op} cannot be read: {error}") from None
        except ProtocolError as error:
            logger.warning("closing a client's connection: %s", error)
            self._send(frame(Op.ERROR, wire.NUMBER.pack(0) + pack([3, "", str(error)])))
        except OSError:
            pass  # the client has ended
        except Exception:  # noqa: BLE001 a fault of this module ends this session alone
            logger.exception("closing a client's connection after an error")

    def _close(self) -> None:
        self._callbacks.end()
        self._backlog.end()
        if self._worker is not None:
            self._worker.join()
        self._outbox.close()
        self._reader.close()
        self.arrays.clear()
        self._programs.clear()
        self.segments.clear()
        self._sock.close()
        self._backend.turns.remove(self._turns)
        self._ended(self)

    def _hello(self, body: bytes, _: Any) -> None:
        [request] = wire.NUMBER.unpack_from(body)
        magic, version = wire.HELLO.unpack_from(body, wire.NUMBER.size)
        if magic != wire.MAGIC:
            raise ProtocolError("the peer is not a client of plugrt-remote")
        if version != wire.VERSION:
            raise ProtocolError(
                f"the client uses version {version} of the protocol, and this server "
                f"{wire.VERSION}: install the same version of plugrt-remote on both sides"
            )
        token = body[wire.NUMBER.size + wire.HELLO.size :]
        if self._token and not hmac.compare_digest(token, self._token):
            self._refuse(request, PermissionDenied("the token is not the server's"))
            raise ProtocolError("a client has another token")
        self._greeted = True
        self._reader.limits = wire.FROM_CLIENT
        self._sock.settimeout(None)
        self._answer(request, self._backend.describe)

    def _ping(self, body: bytes, _: Any) -> None:
        [request] = wire.NUMBER.unpack(body)
        self._answer(request, lambda: None)

    def _stats(self, body: bytes, _: Any) -> None:
        request, device = wire.STATS.unpack(body)
        if device < 0:
            own = {"arrays": len(self.arrays.held), "segments": len(self.segments)}
            self._answer(request, lambda: {**self._backend.stats(), **own})
        else:
            self._answer(request, lambda: self._devices[device].memory_stats())

    def _status(self, body: bytes, _: Any) -> None:
        [request] = wire.NUMBER.unpack(body)
        others = [s for s in tuple(self._backend.sessions) if isinstance(s, Session)]
        sessions = [other.describe() for other in others if other is not self]
        self._answer(request, lambda: {**self._backend.stats(), "sessions": sessions})

    def describe(self) -> dict[str, int]:
        """Returns the figures of the session, by name."""
        return {
            "process": self._peer,
            "seconds": int(time.monotonic() - self._since),
            "arrays": len(self.arrays.held),
            "bytes": self.arrays.bytes,
            "segments": len(self.segments),
            "programs": len(self._programs),
            "launches": self._launches,
        }

    def _segment(self, body: bytes, _: Any) -> None:
        number, size = wire.SEGMENT.unpack(body)
        if not self._reader.fds:
            raise ProtocolError("no file descriptor came with a segment")
        if len(self.segments) >= wire.MOST_SEGMENTS:
            raise ProtocolError(f"a client has {wire.MOST_SEGMENTS} segments at most")
        self.segments[number] = map_segment(self._reader.fds.popleft(), size)

    def _compile(self, body: bytes, code: Any) -> None:
        request, number, digest = wire.COMPILE.unpack_from(body)
        form, name, plain, stated, handlers = unpack(body[wire.COMPILE.size :])
        if len(self._programs) >= _MOST_PROGRAMS:
            raise ProtocolError(f"a client has {_MOST_PROGRAMS} programs at most")
        given = None if code is None else code.tobytes()
        if given is not None and hashlib.sha256(given).digest() != digest:
            raise ProtocolError("the code of a program does not match its hash")
        text = given or self._backend.code(digest)
        if text is None:
            self._answer(request, lambda: None)  # the client then sends the code
            return

        def compile() -> Any:
            program = Program(text, form, name)
            if stated or handlers:
                client = self._backend.client
                program = self._callbacks.bind(program, stated, handlers, client)
            refuse_custom_calls(program, self._backend.policy.custom_calls)
            key = digest, form, name, pack(plain)
            served = self._backend.compile(key, program, partial(read_options, plain))
            self._programs[number] = served
            return served.facts

        if stated or handlers:
            self._start_worker()
        self._backend.pool.submit(self._answer, request, compile)

    def _ask(self, body: bytes, _: Any) -> None:
        request, number, method = wire.ASK.unpack(body)
        if method >= len(wire.METHODS) or number not in self._programs:
            self._refuse(request, NotFound(f"there is no program {number}, or no method {method}"))
            return
        ask = partial(self._programs[number].ask, wire.METHODS[method])
        self._backend.pool.submit(self._answer, request, ask)

    def _cancel(self, body: bytes, _: Any) -> None:
        request, number = wire.CANCEL.unpack(body)
        count = self._backlog.cancel(Op.EXECUTE, wire.NUMBER.pack(number))
        self._answer(request, lambda: count)

    def _execute(self, body: bytes, cancelled: Any) -> None:
        number, first, count, kept, flags = wire.EXECUTE.unpack_from(body)
        begin = wire.EXECUTE.size
        numbers = struct.unpack_from(f"<{count}Q", body, begin)
        served = self._programs.get(number)
        if served is None:
            raise ProtocolError(f"there is no program {number}")
        if cancelled is None and self._turns.is_full():
            if self._worker is None:  # it waits; this thread receives cancellations
                self._start_worker()
                self._backlog.add(Op.EXECUTE, body, None)
                return
            self._turns.wait()
        arrays, held = self.arrays, self.arrays.held
        self._launches += 1
        try:
            if cancelled is not None:
                raise Cancelled("the launch was cancelled before it had begun")
            arguments = [held[n] for n in numbers]
            if Failed in map(type, arguments):
                failed = next(a for a in arguments if type(a) is Failed)
                results: Sequence[Any] = [failed] * served.results
            elif flags & wire.KEPT:
                arrays.require_room(served.size)
                indices = struct.unpack_from(f"<{kept}H", body, begin + 8 * count)
                options = ExecuteOptions(0, indices)
                results = served.launch(arguments, options)
            else:
                arrays.require_room(served.size)
                results = served.launch(arguments)
        except struct.error:
            raise
        except KeyError:
            results = [Failed(DeletedBuffer("an argument was deleted"))] * served.results
        except Exception as error:  # noqa: BLE001 any error of a backend is the result
            results = [Failed(error)] * served.results
        for i, result in enumerate(results):
            arrays.add(first + i, result, 0 if type(result) is Failed else served.sizes[i])
        if self._turns.is_noted() and results and type(results[-1]) is not Failed:
            self._turns.note(results[-1][0].ready_event())
        if flags & wire.NOTICE and results:
            self._answers.notify(first, results[-1], first + len(results) - 1)
