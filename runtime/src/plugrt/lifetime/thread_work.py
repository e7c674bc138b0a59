"""`ThreadWork`: work on another thread, whose start a signal handler cannot break.

Python runs signal handlers in the main thread, between any two lines. An exception that one raises
within ``threading.Thread.start`` becomes a KeyError (CPython 3.11 to 3.13: ``del _limbo[self]``),
and the thread may exist or not. So one C function starts threads here. The first thread to pop the
work from a list does it, so that a start can be repeated.
"""

from __future__ import annotations

import _imp
import sys
from _thread import allocate_lock, get_ident, start_new_thread
from collections.abc import Callable
from importlib import _bootstrap
from types import FrameType
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_IMPORTS: dict[str, Any] = vars(_bootstrap)


class ThreadWork(Generic[T]):
    """A function that another thread calls once.

    The interpreter does not wait for the thread when it ends, and ``threading.enumerate`` does not
    list it.
    """

    __slots__ = ("_ended", "_errors", "_is_over", "_results", "_todo")

    def __init__(self, work: Callable[[], T]) -> None:
        # Lists, emptied by `pop`: the thread may outlive its caller, and must then keep
        # neither function nor result alive.
        self._todo = [work]
        self._results: list[T] = []
        self._errors: list[BaseException] = []
        self._is_over = False
        # Workaround for cpython-event-wait: a lock and not a `threading.Event`, whose condition,
        # interrupted twice, releases a lock that it does not hold: the RuntimeError replaces the
        # interrupt (https://github.com/python/cpython/issues/118433).
        self._ended = allocate_lock()
        self._ended.acquire()

    def start(self) -> bool:
        """Starts a thread for the function; returns False if no thread can be started.

        It may be called again, as after an interrupt: the function is called only once.
        """
        return not self._todo or start_thread(self.run)

    def wait(self, timeout: float = -1) -> bool:
        """Waits until the function has ended; False after ``timeout`` seconds."""
        if not self._is_over:
            if not self._ended.acquire(timeout=timeout):
                return False
            self._ended.release()  # for other waiting threads
        return True

    def give_up(self) -> bool:
        """Prevents the call of the function; returns False if it has begun."""
        try:
            self._todo.pop()
        except IndexError:
            return False
        return True

    def result(self) -> T:
        """Returns what the function returned, once, or raises what it raised."""
        if self._errors:
            raise self._errors.pop()
        return self._results.pop()

    def run(self) -> None:
        """Calls the function, unless its call has begun."""
        try:
            work = self._todo.pop()
        except IndexError:
            return
        try:
            self._results.append(work())
        except BaseException as error:  # noqa: BLE001 raised again by `result`
            self._errors.append(error)
        finally:
            del work
            self._is_over = True
            self._ended.release()


def is_ending(frame: FrameType) -> bool:
    """Whether a thread with this innermost frame has done its `ThreadWork`, or not yet begun it."""
    return frame.f_code is ThreadWork.run.__code__


def start_thread(function: Callable[[], object]) -> bool:
    """Starts a thread for ``function()``; returns False if no thread can be started."""
    release_import_locks()
    try:  # Workaround for cpython-thread-start
        start_new_thread(function, ())
    except RuntimeError as error:
        _raise_if_handlers(error)
        return False
    return True


def release_import_locks() -> None:
    """Releases import locks that this thread still holds although the imports have ended.

    Otherwise a new thread that imports a module would wait for them, and this thread for it.
    """
    # Workaround for cpython-import-locks
    locks: dict[str, Callable[[], Any]] = _IMPORTS["_module_locks"]
    if not locks and not _imp.lock_held():
        return
    functions, names = set[str](), set[str]()
    frame: FrameType | None = sys._getframe()
    while frame:
        if frame.f_globals is _IMPORTS:
            functions.add(frame.f_code.co_name)
            names.add(f"{frame.f_locals.get('name')}.")
        frame = frame.f_back
    for name, reference in locks.copy().items():
        # An import in progress may also hold the locks of the module's parent packages.
        if (lock := reference()) and not any(used.startswith(f"{name}.") for used in names):
            while lock.owner == get_ident() and lock.count:
                lock.release()
    if functions.isdisjoint(("_find_spec", "_get_module_lock")):
        try:
            while _imp.lock_held():
                _imp.release_lock()
        except RuntimeError as error:  # another thread holds it
            _raise_if_handlers(error)


def _raise_if_handlers(error: RuntimeError) -> None:
    """Raises ``error`` if a signal handler raised it, not the C function that was called."""
    if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
        raise error
