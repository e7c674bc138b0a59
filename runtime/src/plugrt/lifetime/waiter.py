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
    """An item that becomes ready at some time, and has an action to run then."""

    def is_ready(self) -> bool:
        """Whether it is known to be ready; False also if only waiting would show it."""

    def finish(self) -> None:
        """Waits for it, and reports it."""


def ended() -> None:
    """Returns at once: backends give it in `execute_with_wait` for a launch known to have ended."""


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
        # Not the condition's own `with`, which is in Python: an interrupt may leave it locked.
        # Reentrant: a signal handler, or the end of an object, may launch within it, and `add`.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._waiting: deque[Awaited] = deque()
        self._serving: list[ThreadWork[None]] = []
        self._threads: list[int] = []
        self._busy = 0
        self._relief: ThreadWork[None] | None = None
        self._is_closed = False

    def add(self, awaited: Awaited) -> None:
        """Has ``awaited`` finished on a thread."""
        with self._lock:
            is_served = not self._is_closed and self._start()
            if is_served:
                self._waiting.append(awaited)
                self._changed.notify()
        if not is_served:
            _finish(awaited)

    def _start(self) -> bool:
        """Starts the first thread, or what starts others if none is free; whether there is one."""
        serving = self._serving
        if not serving:
            serving.append(ThreadWork(self._run))
        elif len(self._waiting) + self._busy >= len(serving) < self._most:
            self._relief = self._relief or ThreadWork(self._relieve)
            self._relief.start()  # again, where an interrupt came between, as below
        if serving[-1].start():
            return True
        serving.pop()  # the system has no more
        return bool(serving)

    def _relieve(self) -> None:
        """Starts a thread whenever nothing is taken from the queue for some time."""
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
            del awaited  # not kept while nothing is waited for

    def _next(self) -> Awaited | None:
        """Returns one that is ready, or the oldest; None once it is closed and all are done."""
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
        """Waits until everything has been finished."""
        with self._lock:
            self._is_closed = True
            self._changed.notify_all()
        for serving in self._serving:
            if serving.give_up():
                self._serve()
            elif threading.get_ident() not in self._threads:
                serving.wait()


def _finish(awaited: Awaited) -> None:
    """Finishes it; reports its exception like that of an ending thread, because this thread serves
    other items.
    """
    try:
        awaited.finish()
    except BaseException as error:  # noqa: BLE001 - shown
        told = (type(error), error, error.__traceback__, threading.current_thread())
        hook: Any = threading.excepthook  # a program may have set it to None
        with suppress(Exception):  # of the hook, or of a stderr that the program has closed
            (hook or threading.__excepthook__)(threading.ExceptHookArgs(told))


class ProcessWaiter:
    """The `Waiter` of this process for some purpose: a forked child begins with one of its own.

    At exit the interpreter waits until everything has been finished, before it tears down what is
    loaded by the time that the first thing is put there: handlers run in reverse order, and
    optree's, which empties its registry of classes, is one.
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
        """Has ``awaited`` finished on the thread."""
        if not self._closes_at_exit:
            self._closes_at_exit = True
            atexit.register(lambda: self._waiter.close())
        self._waiter.add(awaited)
