"""`PendingEvent`: work of a backend that ends later; completed by its author from any thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from plugrt.errors import PjrtError
from plugrt.interface import Event
from plugrt.interface.checks import require_callback
from plugrt_sdk.error_codes import as_pjrt_error
from plugrt_sdk.log import logger

Callback = Callable[[PjrtError | None], None]


class PendingEvent(Event):
    """The completion of work that is under way: what `Backend.event` returns for its handles.

    The author calls `complete` or `fail` once, from whatever thread; hosts ask, wait and call back.
    """

    __slots__ = ("_callbacks", "_error", "_gate", "_lock", "_ready", "_traceback")

    def __init__(self) -> None:
        self._ready = False
        self._error: PjrtError | None = None
        self._callbacks: list[Callback] = []
        # Reentrant: within it a signal handler, or a user's finaliser, may ask this event.
        self._lock = threading.RLock()
        self._gate = threading.Lock()
        """Held until the event is complete."""
        self._gate.acquire()

    def complete(self) -> None:
        """Marks the work as successful, and calls the waiting callbacks on this thread.

        Raises `RuntimeError` if the event was completed before, as `fail` does.
        """
        self._end(None)

    def fail(self, error: BaseException) -> None:
        """Marks the work as failed: ``error`` is raised wherever its results are used.

        A `plugrt.errors.PjrtError` is raised unchanged; any other exception as the one with the
        matching code (``MemoryError``, ``NotImplementedError``), else as `Internal`, with the
        exception as cause.
        """
        self._end(as_pjrt_error(error))

    def _end(self, error: PjrtError | None) -> None:
        with self._lock:
            if self._ready:
                raise RuntimeError("this event was completed before")
            self._error = error
            self._traceback = None if error is None else error.__traceback__
            self._ready = True
            callbacks, self._callbacks = self._callbacks, []
        self._gate.release()
        for callback in callbacks:
            _call(callback, error)

    def is_ready(self) -> bool:
        return self._ready

    def wait(self) -> None:
        if not self._ready:
            with self._gate:  # released at completion, then by each waiter
                pass
        if self._error is not None:
            # The error may be raised many times, on many threads, each time with this traceback.
            raise self._error.with_traceback(self._traceback)

    def on_ready(self, callback: Callback) -> None:
        require_callback(callback)
        with self._lock:
            if not self._ready:
                self._callbacks.append(callback)
                return
        callback(self._error)


def _call(callback: Callback, error: PjrtError | None) -> None:
    """Calls back on the author's thread, which a fault of the callback must not end."""
    try:
        callback(error)
    except Exception:  # noqa: BLE001  # a host's callback may raise anything
        logger.exception("a callback of an event failed")


def when_all_ready(events: Sequence[Event], callback: Callable[[], None]) -> None:
    """Calls back once, when every event is ready, whether or not with an error."""
    left = len(events)
    lock = threading.Lock()

    def one(_: PjrtError | None) -> None:
        nonlocal left
        with lock:
            left -= 1
            last = left == 0
        if last:
            callback()

    for event in events:
        event.on_ready(one)
    if not events:
        callback()
