"""`Watch`: detects and names a lost process of the run, or a lost coordinator."""

from __future__ import annotations

import ctypes
import dis
import importlib
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from plugrt.base.logger import get_logger
from plugrt.errors import AlreadyExists, PjrtError, ProcessLost, describe, escape_controls
from plugrt.lifetime.interruptions import scope
from plugrt.lifetime.main_interpreter import current_frames
from plugrt.plugins.coordination import Connection

logger = get_logger(__package__)
_GRACE_SECONDS = 5.0
"""How long native code may keep the main thread, where no exception can be raised."""
_LAST_SECONDS = 15.0
"""How long a process that leaves waits for an answer to its last request."""
_ENDED = "plugrt/ended/{}"
_FIRST_END = "plugrt/first-end"
"""The key with the index of the first process that reported its end; all processes read it."""
_POLL_SECONDS = 0.05
_LONGEST = 20_000
"""Maximum number of bytes shown of a process's report on itself."""


class Watch:
    """Polls the processes of the run and the coordinator, in threads.

    A lost process is reported once: in the log, and as `ProcessLost` in the main thread once that
    runs Python code. If native code keeps the main thread, for example a collective that waits for
    the lost process, this process exits with status 1 after `_GRACE_SECONDS`. ``look_every`` is the
    number of seconds between checks for reported ends, each one small request.
    """

    def __init__(self, connection: Connection, look_every: float = 1.0) -> None:
        self.connection = connection
        self._look_every = look_every
        heartbeat = connection.membership.heartbeat_timeout
        self._interval = min(5.0, heartbeat / 10)
        self._patience = heartbeat + 2 * self._interval + 2.0
        self._stopping = threading.Event()
        self._noticed = threading.Event()
        self._waiting = 0
        self.lost: tuple[int, ...] = ()
        """The lost processes."""
        self.coordinator_is_lost = False
        """If set, the connection must not be used: the coordinator does not answer."""
        self._reporting = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="plugrt-watch", daemon=True)
        self._end_thread = threading.Thread(
            target=self._watch_ends, name="plugrt-watch-ends", daemon=True
        )
        self._coordinator_thread = threading.Thread(
            target=self._watch_coordinator, name="plugrt-watch-coordinator", daemon=True
        )

    def start(self) -> None:
        """Begins to watch, if there is another process."""
        if self.connection.num_processes > 1:
            self._thread.start()
            self._end_thread.start()
            self._coordinator_thread.start()

    def stop(self) -> None:
        """Stops watching; does not wait for the threads."""
        self._stopping.set()

    def await_end(self) -> None:
        """Waits until the watching threads have ended, which is soon, as the other processes leave
        too.

        If a thread is in native code when the interpreter ends, the process aborts: "FATAL:
        exception not rethrown".
        """
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(_LAST_SECONDS)

    def tell_of_end(self, how: str) -> None:
        """Reports to the other processes how this one ends: a verb and a reason."""
        me = self.connection
        try:
            me.put(_ENDED.format(me.process_id), how.encode("utf-8", "replace"))
            me.put(_FIRST_END, b"%d" % me.process_id)
        except AlreadyExists:  # another process was the first
            pass
        except PjrtError as error:  # the coordinator is gone as well
            logger.debug("the others were not told: %s", describe(error))

    def _run(self) -> None:
        everyone = set(range(self.connection.num_processes))
        while not self._stopping.wait(self._interval):
            try:
                live = self.connection.live_processes()
                lost = tuple(sorted(everyone - set(live)))
                if lost and not self._stopping.is_set():
                    self._report(lost)
                    return
            except PjrtError as error:
                logger.debug("the coordinator was not reached: %s", describe(error))

    def _watch_ends(self) -> None:
        """Reports a process that has reported its end, long before it misses heartbeats."""
        while not self._stopping.wait(self._look_every) and not self.coordinator_is_lost:
            try:
                told = self.connection.try_get(_FIRST_END) is not None
                ended = self._ended() if told else ()
                if ended and not self._stopping.is_set():
                    self._report(ended)
                    return
            except PjrtError as error:
                logger.debug("the coordinator was not reached: %s", describe(error))

    def _watch_coordinator(self) -> None:
        reason = self.connection.await_loss()
        if not reason or self._stopping.is_set():
            return
        self.coordinator_is_lost = True
        me = self.connection
        message = (
            f"process {me.process_id} of {me.num_processes} cannot go on: the coordinator at "
            f"{me.membership.address} does not answer: it was killed, or its host has failed "
            f"({reason})"
        )
        logger.error("%s", message)
        # Also if `explain` waits, as it calls the coordinator. It comes before the next heartbeat
        # fails, when jaxlib would end the process.
        self._interrupt(message, min(_GRACE_SECONDS, me.membership.heartbeat_timeout / 10))

    def _report(self, lost: Sequence[int]) -> None:
        message = self._describe(lost)
        with self._reporting:
            if self.coordinator_is_lost or self._noticed.is_set():
                return
            self.lost = tuple(lost)
            self._noticed.set()
        logger.error("%s", message)
        if not self._waiting:
            self._interrupt(message, _GRACE_SECONDS)

    def _describe(self, lost: Sequence[int]) -> str:
        me = self.connection
        count, heartbeat = me.num_processes, me.membership.heartbeat_timeout
        silent = f"has sent no heartbeat for {heartbeat:g} s: it was killed, or its host has failed"
        reasons = []
        for index in lost:
            who = _read(me.try_get(f"plugrt/process/{index}") or b"of unknown name")
            told = me.try_get(_ENDED.format(index))
            reasons.append(f"process {index} ({who}) {_read(told) if told else silent}")
        return f"process {me.process_id} of {count} cannot go on: {'; '.join(reasons)}"

    def _interrupt(self, message: str, seconds: float) -> None:
        """Raises `ProcessLost` in the main thread; ends this process if native code keeps it."""
        arguments = (message, self.lost)
        if interrupt_main_thread(ProcessLost, arguments, seconds, self._stopping):
            return
        if not self._stopping.is_set():
            logger.error("native code does not return; this process exits")
            sys.stdout.flush()
            os._exit(1)

    def explain(self, error: PjrtError) -> ProcessLost | None:
        """Returns the lost process that made an exchange fail, once it is known.

        Waits as long as a lost process can stay undetected.
        """
        self._waiting += 1
        try:
            until = time.monotonic() + self._patience
            while time.monotonic() < until:
                try:
                    ended = self.lost or self._ended()
                    if ended:
                        return ProcessLost(f"{self._describe(ended)} (what failed: {error})", ended)
                except PjrtError as late:
                    logger.debug("the coordinator was not reached: %s", describe(late))
                if self._noticed.wait(_POLL_SECONDS):
                    continue
        finally:
            self._waiting -= 1
        return None

    def _ended(self) -> tuple[int, ...]:
        me = self.connection
        others = (i for i in range(me.num_processes) if i != me.process_id)
        return tuple(i for i in others if me.try_get(_ENDED.format(i)) is not None)


def _read(text: bytes) -> str:
    """Returns the text of another process, or of a stranger, in the key-value store."""
    return escape_controls(text[:_LONGEST].decode("utf-8", "replace"))


_LOOK_SECONDS = 0.05
_IMPORT_SECONDS = 60.0
"""How long to wait for an import in native code."""


def interrupt_main_thread(
    kind: type[BaseException],
    arguments: tuple[object, ...],
    seconds: float,
    given_up: threading.Event,
) -> bool:
    """Raises ``kind(*arguments)`` in the main thread, and waits until it was raised.

    Raises it again if CPython discards it: in a function that the garbage collector calls, in a
    ``__del__``, in the callback of a weak reference. Raises it later if native code is importing a
    module, since it may discard the error: jaxlib does so for its import of JAX.

    Returns False if native code kept the main thread for ``seconds``, or if the wait was abandoned.
    """
    raised, dropped = threading.Event(), threading.Event()

    class Raised(kind):  # type: ignore[valid-type,misc]  # CPython raises a class in a thread
        def __init__(self) -> None:
            super().__init__(*arguments)
            raised.set()

    Raised.__name__, Raised.__qualname__ = kind.__name__, kind.__qualname__
    Raised.__module__ = kind.__module__
    main = threading.main_thread().ident or 0
    imported_until = time.monotonic() + _IMPORT_SECONDS
    while _is_native_import(current_frames().get(main)):
        if given_up.wait(_LOOK_SECONDS) or time.monotonic() > imported_until:
            break
    until = time.monotonic() + seconds
    with _set_where_dropped(Raised, dropped):
        while not given_up.is_set():
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(main), ctypes.py_object(Raised)
            )
            if not raised.wait(until - time.monotonic()):
                return False
            if not dropped.wait(_LOOK_SECONDS):
                return True
            raised.clear()
            dropped.clear()
    return False


@scope
def _set_where_dropped(kind: type[BaseException], dropped: threading.Event) -> Iterator[None]:
    """Sets the event where CPython drops such an exception; it is not printed then."""
    before = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        if unraisable.exc_type is kind:
            dropped.set()
        else:
            before(unraisable)

    try:
        sys.unraisablehook = hook
        yield
    finally:
        if sys.unraisablehook is hook:
            sys.unraisablehook = before


def _is_native_import(frame: FrameType | None) -> bool:
    """Whether the frame, or one that it was called from, is of an import that native code makes."""
    while frame is not None:
        caller = frame.f_back
        if _is_of_importlib(frame) and caller is not None and not _is_of_importlib(caller):
            code = caller.f_code.co_code
            if dis.opname[code[caller.f_lasti]] not in ("IMPORT_NAME", "IMPORT_FROM"):
                return True
        frame = caller
    return False


def _is_of_importlib(frame: FrameType) -> bool:
    name = frame.f_code.co_filename
    return name.startswith("<frozen importlib") or name == importlib.__file__
