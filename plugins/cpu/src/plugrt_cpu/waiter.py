"""`Waiter`: one thread that waits for jaxlib's arrays, and calls back for each."""

from __future__ import annotations

import atexit
import os
import threading
from collections import deque
from typing import Protocol


class Awaited(Protocol):
    """Something that is ready at some time, and has somebody to tell."""

    def is_ready(self) -> bool:
        """Whether it is ready."""

    def finish(self) -> None:
        """Waits for it, and calls back; raises nothing."""


class Waiter:
    """A queue, and the thread that serves it: started with the first that is put there.

    What is ready is finished before the oldest is waited for; while that is waited for, what
    becomes ready meanwhile is told later. At exit the interpreter waits until every callback was
    made, before it tears things down; from then on callers wait themselves.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[Awaited] = deque()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def add(self, awaited: Awaited) -> None:
        """Has ``awaited`` finished on the thread."""
        with self._changed:
            is_closed = self._is_closed
            if not is_closed:
                self._waiting.append(awaited)
                self._changed.notify()
            if self._thread is None and not is_closed:
                self._thread = threading.Thread(
                    target=self._run, name="plugrt-cpu-events", daemon=True
                )
                self._thread.start()
        if is_closed:
            awaited.finish()

    def _run(self) -> None:
        while (awaited := self._next()) is not None:
            awaited.finish()

    def _next(self) -> Awaited | None:
        """Returns one that is ready, or the oldest; None once it is closed and all are done."""
        with self._changed:
            while not self._waiting:
                if self._is_closed:
                    return None
                self._changed.wait()
            found = next((a for a in self._waiting if a.is_ready()), self._waiting[0])
            self._waiting.remove(found)
            return found

    def close(self) -> None:
        """Waits until every callback was made."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()


class _Process:
    """The waiter of this process: a forked child begins with one of its own."""

    def __init__(self) -> None:
        self.renew()
        os.register_at_fork(after_in_child=self.renew)
        atexit.register(lambda: self.waiter.close())

    def renew(self) -> None:
        self.waiter = Waiter()


_process = _Process()


def finish_when_ready(awaited: Awaited) -> None:
    """Has ``awaited`` finished on the thread of this process."""
    _process.waiter.add(awaited)
