"""`Answers`: sends contents, answers to waits, and notices, once arrays are ready."""

from __future__ import annotations

import mmap
import threading
from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.errors import DeletedBuffer, ResourceExhausted
from plugrt_remote import wire
from plugrt_remote.serving.arrays import Failed, SessionArrays
from plugrt_remote.serving.backend import ServedBackend
from plugrt_remote.values import ProtocolError, pack
from plugrt_remote.wire import Op, frame

_COPIED_BY_TWO = 4 << 20
"""Two threads copy contents of at least this many bytes."""


class Answers:
    """Answers the requests of one session, some on threads of the backend."""

    def __init__(
        self, backend: ServedBackend, arrays: SessionArrays, send: Callable[..., None]
    ) -> None:
        self._backend, self._arrays, self._send = backend, arrays, send
        self.segments: dict[int, mmap.mmap] = {}

    def answer(self, request: int, function: Callable[[], Any]) -> None:
        """Sends the result of ``function``, or its error."""
        try:
            body = pack(function())
        except Exception as error:  # noqa: BLE001 any error of a backend is sent to the client
            self.refuse(request, error)
        else:
            self._send(frame(Op.REPLY, wire.NUMBER.pack(request) + body))

    def refuse(self, request: int, error: BaseException) -> None:
        """Sends an error."""
        self._send(frame(Op.ERROR, wire.NUMBER.pack(request) + pack(wire.pack_error(error))))

    def _when_ready(self, held: Any, index: int, then: Callable[[bool], None]) -> None:
        """Calls ``then(False)`` if the parts are ready, else ``then(True)`` on any thread later."""
        events = [b.ready_event() for b in (held if index < 0 else [held[index]])]
        waiting = [event for event in events if not event.is_ready()]
        if not waiting:
            then(False)
            return
        left, lock = [len(waiting)], threading.Lock()

        def one(_: object) -> None:
            with lock:
                left[0] -= 1
                last = not left[0]
            if last:
                then(True)

        for event in waiting:
            event.on_ready(one)

    def read(self, body: bytes, _: Any) -> None:
        """Sends the contents of an array, in the message or in a segment."""
        request, number, index, segment = wire.READ.unpack(body)
        mapped = self.segments.get(segment)
        if segment and mapped is None:
            raise ProtocolError(f"there is no segment {segment}")
        try:
            held = self._arrays.get(number, index)

            def copy() -> None:
                try:
                    self._send_contents(request, held[index].to_host(), mapped)
                except Exception as error:  # noqa: BLE001 any error of a backend is sent to the client
                    self.refuse(request, error)

            def then(late: bool) -> None:
                if late or segment:
                    self._backend.pool.submit(copy)
                else:
                    copy()

            self._when_ready(held, index, then)
        except Exception as error:  # noqa: BLE001 any error of a backend is sent to the client
            self.refuse(request, error)

    def _send_contents(self, request: int, host: Any, mapped: mmap.mmap | None) -> None:
        answer = wire.NUMBER.pack(request) + pack(None)
        if mapped is None:
            flat = np.ascontiguousarray(host).reshape(-1).view(np.uint8) if host.size else None
            self._send(frame(Op.REPLY, answer, 0 if flat is None else len(flat)), flat)
            return
        if host.nbytes > len(mapped):
            raise ResourceExhausted(f"an array of {host.nbytes} bytes is larger than its segment")
        place = np.frombuffer(mapped, host.dtype, host.size).reshape(host.shape)
        if host.nbytes < _COPIED_BY_TWO or not host.flags.c_contiguous:
            np.copyto(place, host)
        else:
            self._copy_by_two(place.reshape(-1).view(np.uint8), host.reshape(-1).view(np.uint8))
        self._send(frame(Op.REPLY, answer))

    def _copy_by_two(self, place: npt.NDArray[np.uint8], contents: npt.NDArray[np.uint8]) -> None:
        """Copies bytes on this thread and one of the backend's, if one is free."""
        half = len(place) // 2
        other = self._backend.pool.submit(np.copyto, place[:half], contents[:half])
        np.copyto(place[half:], contents[half:])
        if other.cancel():  # it has not begun
            np.copyto(place[:half], contents[:half])
        else:
            other.result()

    def wait(self, body: bytes, _: Any) -> None:
        """Answers once an array is ready."""
        request, number, index = wire.WAIT.unpack(body)
        try:
            held = self._arrays.get(number, max(index, 0))
            end = partial(_finish, held, index)
            self._when_ready(held, index, lambda late: self.answer(request, end))
        except Exception as error:  # noqa: BLE001 any error of a backend is sent to the client
            self.refuse(request, error)

    def watch(self, body: bytes, _: Any) -> None:
        """Sends a notice once an array is ready."""
        [number] = wire.NUMBER.unpack(body)
        held = self._arrays.held.get(number)
        if held is None:
            held = Failed(DeletedBuffer(f"there is no array {number}: it was deleted or donated"))
        self.notify(number, held, number)

    def notify(self, number: int, held: Any, of: int) -> None:
        """Sends a notice once an array is ready, with its contents if it is small."""

        def tell(late: bool) -> None:
            failed = contents = None
            try:
                _finish(held, -1)
                contents = _small_contents(held)
            except DeletedBuffer:  # deleted since the watch began; the computation has ended
                pass
            except Exception as error:  # noqa: BLE001 any error of a backend is sent to the client
                failed = wire.pack_error(error)
            body = wire.READY.pack(number, of) + pack(failed)
            self._send(frame(Op.READY, body, 0 if contents is None else len(contents)), contents)

        if type(held) is Failed:
            self._send(frame(Op.READY, wire.READY.pack(number, of) + pack(held.packed)))
            return
        try:
            self._when_ready(held, -1, tell)
        except Exception as error:  # noqa: BLE001 any error of a backend is sent to the client
            failed = pack(wire.pack_error(error))
            self._send(frame(Op.READY, wire.READY.pack(number, of) + failed))


def _finish(held: Any, index: int) -> None:
    for buffer in held if index < 0 else [held[index]]:
        buffer.block_until_ready()


def _small_contents(held: Any) -> Any:
    """Returns the bytes of a small array on one device; None for other arrays."""
    if len(held) > 1 or held[0].is_deleted() or held[0].dtype.kind == "V":
        return None
    if not 0 < prod(held[0].shape) * held[0].dtype.itemsize <= wire.CONTENTS_WITH_NOTICE:
        return None
    return np.ascontiguousarray(held[0].to_host()).reshape(-1).view(np.uint8)
