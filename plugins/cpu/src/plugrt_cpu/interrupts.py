"""Runs compilation off the main thread so that SIGINT and interpreter exit cannot crash jaxlib."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# Process-wide: the exit of the process waits for all compilations.
_under_way: set[threading.Event] = set()
"""An event for each compilation that has not ended."""


class CompileThread(threading.Thread):
    """A thread that compiles while the main thread waits for it, and ends a moment after that."""


def is_alone() -> bool:
    """Whether no other thread runs Python code, and nothing is compiled."""
    # The thread of a compilation that is done may still be ending.
    others = [t for t in threading.enumerate() if not isinstance(t, CompileThread)]
    return not _under_way and len(others) <= 1


def run_uninterrupted(work: Callable[[], T]) -> T:
    """Returns what ``work()`` gives. Ctrl-C raises at once, and the work ends in the background.

    jaxlib 0.10 compiles in a thread of its own and checks for signals while it waits: an interrupt
    frees the program that the thread is still reading, and the process crashes. Python's signal
    handlers run in the main thread only, so another thread waits for jaxlib.
    """
    # A collection meanwhile, in whichever thread, could run finalisers; see `tracebacks`.
    pausing = gc.isenabled() and is_alone()
    # The lists are emptied here: the thread may outlive this call briefly, and would keep
    # the client alive.
    todo, results = [work], list[T]()
    if threading.current_thread() is not threading.main_thread():
        return _run(todo)
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(_run(todo))
        except BaseException as error:  # noqa: BLE001  # raised again by the waiting thread
            errors.append(error)
        finally:
            finished.release()

    finished = threading.Lock()
    finished.acquire()
    # Not join: after an interrupt CPython 3.11 marks the thread as ended and does not wait for it
    # at exit (https://github.com/python/cpython/issues/90882). Not an event: interrupted twice, its
    # condition releases a lock that it does not hold, and the RuntimeError replaces the interrupt
    # (https://github.com/python/cpython/issues/118433).
    try:
        if pausing:
            gc.disable()
        CompileThread(target=run, name="plugrt-cpu-compile").start()
        finished.acquire()
    except BaseException:
        todo.clear()  # unless the work has begun, which goes on
        raise
    finally:
        if pausing:
            gc.enable()
    if errors:
        raise errors.pop()
    return results.pop()


def _run(todo: list[Callable[[], T]]) -> T:
    """Returns what the work gives, which is noted as under way by the thread that does it.

    No interrupt comes between the two, as it might in the main thread, which would leave the note.
    The note is there before the work is taken: without work to do, nothing is begun any more.
    """
    done = threading.Event()
    try:
        _under_way.add(done)
        return todo.pop()()
    finally:
        _under_way.discard(done)
        done.set()


def _await_all() -> None:
    """Waits, when the interpreter ends, for the compilations that are under way.

    A thread that returns from jaxlib into an interpreter that has ended aborts the process
    (SIGABRT). Python waits for threads at exit, but a second Ctrl-C ends that wait. A third one
    then ends the process by the signal itself.
    """
    while _under_way:
        try:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            for done in list(_under_way):
                done.wait()
        except KeyboardInterrupt:
            continue  # it came before the handler was changed


atexit.register(_await_all)
if hasattr(os, "register_at_fork"):
    # A child process has none of the threads.
    os.register_at_fork(after_in_child=_under_way.clear)
