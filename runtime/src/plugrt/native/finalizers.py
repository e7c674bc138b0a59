"""`End`: calls a function when an object ends, at once or before the next call of plugrt.

Python ignores exceptions in finalisers. A signal handler may run at any line of one in the main
thread, so a Ctrl-C could be lost. The core calls finalisers from C: it raises such an exception
when the finaliser has ended, and calls the interrupted work again. Work is deferred during a
garbage collection (any lock may be held), within a function that a library calls, and at the
recursion limit. `finish_pending` does the deferred work; so do the next call, put or compilation,
``memory_stats``, ``live_arrays``, ``close`` and the interpreter's exit. Without the core,
finalisers are Python functions, and a signal handler's exception in one is lost.

Python calls the functions in `gc.callbacks` before and after each collection, and ignores their
exceptions ("Exception ignored in"). So these are C functions, in which no signal handler runs.
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
    """Holds one entry during a collection; a list, whose truth value is the fastest to test.

    Python calls ``getattr(running, "start", information)`` before a collection, with ``"stop"``
    after it. Reading the property changes the list.
    """

    start = property(methodcaller("append", True))
    stop = property(methodcaller("clear"))


class _Here(threading.local):
    """The state of one thread."""

    depth = 0
    collecting = False
    start = property(methodcaller("__setattr__", "collecting", True))
    stop = property(methodcaller("__setattr__", "collecting", False))


running = _Running()
"""True as a condition while the garbage collector runs, in any thread."""
here = _Here()
"""``depth``: how many calls from libraries are running on this thread."""

gc.callbacks += [partial(getattr, running), partial(getattr, here)]


def is_collecting_here() -> bool:
    """Whether the garbage collector runs in this thread, so that a finaliser is the caller."""
    return bool(running) and here.collecting


_ROOM = 50
"""The depth of nested calls that a finaliser may need."""


def _descend(left: int = _ROOM) -> None:
    """Raises `RecursionError` if fewer nested calls than that are left."""
    if left:
        _descend(left - 1)


# Process-wide: finalisers of any object defer work; the core has such a list, too.
_pending: list[tuple[Work, object]] = []
# Process-wide: the interpreter's end stops all finalisers.
_stopped: list[bool] = []


def finish(work: Work, keep: object = None) -> None:
    """Calls a finaliser's ``work``, or defers it and keeps the object ``keep`` alive until then."""
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
    """Calls ``work()`` when this object is freed: at once, or before the next call of plugrt.

    Its owner keeps it as an attribute. ``work`` must not refer to the owner. It is called again
    after a signal handler raised in it, so C functions must do all that may happen only once.
    """

    __slots__ = ("_work",)

    def __init__(self, work: Work) -> None:
        self._work = work

    # Bound here: at exit the interpreter may have cleared this module's globals.
    def __del__(self, _finish: Callable[[Work], None] = finish) -> None:
        _finish(self._work)


def _finish_pending() -> None:
    """Does the deferred work of finalisers, except within a library's call."""
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
