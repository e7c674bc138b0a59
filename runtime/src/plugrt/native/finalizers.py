"""`End`: calls a function when an object ends, at once or before the next call of plugrt.

Python drops what a finaliser raises, and may call a signal handler at any line of one in the main
thread: a Ctrl-C was lost there. The core calls finalisers in C. It raises such an exception as soon
as the finaliser is over, and calls again what it interrupted. Work is put off where a garbage
collection runs (any lock may be held), within a function that a library calls, and at the
recursion limit. `finish_pending` does it then; so do the next call, put or compilation,
``memory_stats``, ``live_arrays``, ``close`` and the interpreter's exit. Without the core finalisers
are Python functions: an exception of a signal handler in one is lost.

Python calls what is in `gc.callbacks` before and after each collection, at whatever place the
collection comes, and drops what such a callback raises ("Exception ignored in"). So these callbacks
consist of functions written in C: no signal handler runs in these.
"""

from __future__ import annotations

import atexit
import gc
import threading
from collections.abc import Callable
from functools import partial
from operator import methodcaller

from plugrt.lifetime.forks import call_in_child
from plugrt.lifetime.interruptions import is_interruption
from plugrt.native.native_core import core

Work = Callable[[], object]


class _Running(list[bool]):
    """Holds one entry while a collection runs: a list, because that is the quickest to look at.

    Python calls ``getattr(running, "start", information)`` before a collection, ``"stop"`` after
    it. Reading the property calls the method that it names.
    """

    start = property(methodcaller("append", True))
    stop = property(methodcaller("clear"))


class _Here(threading.local):
    """The state of each thread."""

    depth = 0
    collecting = False
    start = property(methodcaller("__setattr__", "collecting", True))
    stop = property(methodcaller("__setattr__", "collecting", False))


running = _Running()
"""True in a condition while the garbage collector runs, in any thread."""
here = _Here()
"""``depth``: how many calls from a library are under way on this thread."""

gc.callbacks += [partial(getattr, running), partial(getattr, here)]


def is_collecting_here() -> bool:
    """Whether the garbage collector runs in this thread: the caller is part of a finaliser."""
    return bool(running) and here.collecting


_ROOM = 50
"""Calls one within the other that a finaliser may make."""


def _descend(left: int = _ROOM) -> None:
    """Raises `RecursionError` where there is no room for calls."""
    if left:
        _descend(left - 1)


# Process-wide: finalisers of any object put work off, as does the core's own list.
_pending: list[tuple[Work, object]] = []
# Process-wide: the interpreter's end stops all finalisers.
_stopped: list[bool] = []


def finish(work: Work, keep: object = None) -> None:
    """Calls what a finaliser has to do, or puts it off, and keeps an object until then."""
    if _stopped:
        return
    if here.depth or is_collecting_here():
        _pending.append((work, keep))
        return
    try:
        _descend()
    except RecursionError:
        _pending.append((work, keep))
    else:
        work()


class _PythonEnd:
    """Calls ``work()`` when this object ends: at once, or before the next call of plugrt.

    An object has one as an attribute. ``work`` must not refer to that object, and is called again
    where a signal handler raised in it: what must be done once it does by functions in C.
    """

    __slots__ = ("_work",)

    def __init__(self, work: Work) -> None:
        self._work = work

    # Bound here: at exit the interpreter may have cleared this module's globals.
    def __del__(self, _finish: Callable[[Work], None] = finish) -> None:
        _finish(self._work)


def _finish_pending() -> None:
    """Does what finalisers have put off, unless a library calls this."""
    if _pending and not here.depth:
        for _ in range(len(_pending)):
            work, _keep = _pending.pop(0)
            work()


End: Callable[[Work], object] = _PythonEnd
finish_pending: Callable[[], None] = _finish_pending
_stop: Callable[[], None] = partial(_stopped.append, True)

if core is not None:
    End, finish_pending, _stop = core.End, core.finish_pending, core.stop_finalizers

    @call_in_child
    def _tell_core() -> None:
        main = threading.main_thread().ident
        core.set_finalizer_hooks(running, here, _descend, is_interruption, main)

    _tell_core()


def _end() -> None:
    finish_pending()
    _stop()


# Handlers run in reverse order: this one after handlers of later imports.
atexit.register(_end)
