"""`Waiter`: threads that wait for one item after the other, and report each end."""

from __future__ import annotations

import atexit
import threading
import time
from collections import deque
from contextlib import suppress
from typing import Any, Protocol

from plugrt.lifetime.forks import call_in_child
from plugrt.lifetime.thread_work import ThreadWork


class Awaited(Protocol):
    """An item that becomes ready at some time, with an action to run then."""

    def is_ready(self) -> bool:
        """Whether it is known to be ready; also False if that is only known by waiting."""

    def finish(self) -> None:
        """Waits until it is ready, and runs the action."""


def ended() -> None:
    """Returns at once; `execute_with_wait` of a backend returns it for a launch that has ended."""


class Waiter:
    """A queue, and at most ``threads`` threads that serve it.

    Each thread but the first starts when no item was removed from the queue for ``patience``
    seconds: most items are ready sooner, and a thread for each costs more than waiting. Items that
    are ready are finished before a thread waits for the oldest one. While all threads wait, items
    that become ready are finished later. After `close`, callers wait themselves.
    """

    def __init__(self, name: str, threads: int = 1, patience: float = 0.01) -> None:
        self._name = name
        self._most = threads
        self._patience = patience
        # Acquired as a lock, not by the condition's `with`, which is in Python: an interrupt may
        # leave that locked. Reentrant: a signal handler or a finaliser may launch, and so call
        # `add`, while it is held.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._waiting: deque[Awaited] = deque()
        self._serving: list[ThreadWork[None]] = []
        self._threads: list[int] = []
        self._busy = 0
        self._relief: ThreadWork[None] | None = None
        self._is_closed = False

    def add(self, awaited: Awaited) -> None:
        """Queues ``awaited`` for a thread to finish; without a thread, finishes it here."""
        with self._lock:
            is_served = not self._is_closed and self._start()
            if is_served:
                self._waiting.append(awaited)
                self._changed.notify()
        if not is_served:
            _finish(awaited)

    def _start(self) -> bool:
        """Starts the first thread, or `_relieve` if none is free; returns whether one serves."""
        serving = self._serving
        if not serving:
            serving.append(ThreadWork(self._run))
        elif len(self._waiting) + self._busy >= len(serving) < self._most:
            self._relief = self._relief or ThreadWork(self._relieve)
            self._relief.start()  # repeated if an interrupt prevented it, as below
        if serving[-1].start():
            return True
        serving.pop()  # the system refuses another thread
        return bool(serving)

    def _relieve(self) -> None:
        """Starts a thread whenever no item is removed from the queue for ``patience`` seconds."""
        before: Awaited | None = None
        while True:
            time.sleep(self._patience)
            with self._lock:
                if not self._waiting or len(self._serving) == self._most:
                    self._relief = None
                    return
                if self._waiting[0] is before:
                    self._serving.append(ThreadWork(self._run))
                    self._start()
                before = self._waiting[0]

    def _run(self) -> None:
        self._threads.append(threading.get_ident())
        threading.current_thread().name = self._name
        self._serve()

    def _serve(self) -> None:
        while (awaited := self._next()) is not None:
            _finish(awaited)
            with self._lock:
                self._busy -= 1
            del awaited  # not kept alive while the queue is empty

    def _next(self) -> Awaited | None:
        """Removes and returns a ready item, or the oldest; None if closed and empty."""
        with self._lock:
            while not self._waiting:
                if self._is_closed:
                    return None
                self._changed.wait()
            found = next((a for a in self._waiting if a.is_ready()), self._waiting[0])
            self._waiting.remove(found)
            self._busy += 1
            return found

    def close(self) -> None:
        """Waits until all items are finished."""
        with self._lock:
            self._is_closed = True
            self._changed.notify_all()
        for serving in self._serving:
            if serving.give_up():
                self._serve()
            elif threading.get_ident() not in self._threads:
                serving.wait()


def _finish(awaited: Awaited) -> None:
    """Finishes an item; passes an exception to ``threading.excepthook``, and does not raise it."""
    try:
        awaited.finish()
    except BaseException as error:  # noqa: BLE001 - shown
        told = (type(error), error, error.__traceback__, threading.current_thread())
        hook: Any = threading.excepthook  # a program may have set it to None
        with suppress(Exception):  # the hook fails, or the program has closed stderr
            (hook or threading.__excepthook__)(threading.ExceptHookArgs(told))


class ProcessWaiter:
    """A `Waiter` for one purpose; a forked child gets a new one.

    At exit the interpreter waits until all items are finished. The exit handler is registered with
    the first item, so that it runs before those of modules imported earlier, such as optree's,
    which empties the registry of pytree classes.
    """

    def __init__(self, name: str, threads: int = 1) -> None:
        self._name = name
        self._threads = threads
        self._closes_at_exit = False
        self._renew()
        call_in_child(self._renew)

    def _renew(self) -> None:
        self._waiter = Waiter(self._name, self._threads)

    def add(self, awaited: Awaited) -> None:
        """Queues ``awaited``, as `Waiter.add`."""
        if not self._closes_at_exit:
            self._closes_at_exit = True
            atexit.register(lambda: self._waiter.close())
        self._waiter.add(awaited)
