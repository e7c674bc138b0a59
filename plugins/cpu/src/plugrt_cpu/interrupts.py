"""Runs compilation off the main thread so that SIGINT and interpreter exit cannot crash jaxlib."""

from __future__ import annotations

import atexit
import gc
import signal
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from plugrt.frames.argument_errors import after_checks
from plugrt.lifetime.forks import call_in_child
from plugrt.lifetime.main_interpreter import current_frames
from plugrt.lifetime.thread_work import ThreadWork, is_ending

T = TypeVar("T")

# Process-wide: the exit of the process waits for all compilations.
_under_way: set[threading.Event] = set()
"""An event for each compilation that has not ended."""


def is_alone() -> bool:
    """Whether no other thread runs Python code, and nothing is compiled."""
    here = threading.get_ident()
    frames = [frame for thread, frame in current_frames().items() if thread != here]
    # The thread of a compilation that is done may still be ending.
    return not _under_way and all(is_ending(frame) for frame in frames)


@after_checks
def run_uninterrupted(work: Callable[[], T]) -> T:
    """Returns ``work()``. Ctrl-C raises at once, and the work ends in the background.

    jaxlib 0.10 compiles in a thread of its own and checks for signals while it waits: an interrupt
    frees the program that the thread is still reading, and the process crashes. Python's signal
    handlers run in the main thread only, so another thread waits for jaxlib.
    """
    # Workaround for jaxlib-interrupted-compile
    # A collection meanwhile, in any thread, could run finalisers; see `tracebacks`.
    pausing = gc.isenabled() and is_alone()
    if threading.get_ident() != threading.main_thread().ident:
        return _run(work)
    aside = ThreadWork(partial(_run, work))
    try:
        if pausing:
            gc.disable()
        if not aside.start():
            aside.run()
        aside.wait()
    except BaseException:
        if not aside.give_up():
            # Handlers at exit run in reverse order: this one before those that end clients.
            atexit.unregister(_await_all)
            atexit.register(_await_all)
        raise
    finally:
        if pausing:
            gc.enable()
    return aside.result()


def _run(work: Callable[[], T]) -> T:
    """Returns the result of the work; the thread that does it records it as under way.

    An interrupt in the main thread could come between recording and work, and leave the record.
    """
    done = threading.Event()
    try:
        _under_way.add(done)
        return work()
    finally:
        _under_way.discard(done)
        done.set()


def _await_all() -> None:
    """Waits at interpreter exit for the compilations that are under way.

    A thread that returns from jaxlib into a finalised interpreter aborts the process (SIGABRT). One
    more Ctrl-C then ends the process by the signal itself.
    """
    # Workaround for cpython-87135
    while _under_way:
        try:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            for done in list(_under_way):
                done.wait()
        except KeyboardInterrupt:
            continue  # it came before the handler was changed


atexit.register(_await_all)
call_in_child(_under_way.clear)  # it has none of the threads
