"""`require_main_interpreter`, `current_frames`: this interpreter, and the frames of its threads."""

from __future__ import annotations

import gc
import importlib
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType

from plugrt.errors import FailedPrecondition


def is_main_interpreter() -> bool:
    """Whether this interpreter is the first of its process."""
    for name in ("_interpreters", "_xxsubinterpreters"):  # Python 3.13, and those before
        try:
            interpreters = importlib.import_module(name)
        except ImportError:
            continue
        return bool(interpreters.get_current() == interpreters.get_main())
    return True


def require_main_interpreter(package: str) -> None:
    """Raises `FailedPrecondition` in an interpreter that is not the first of the process.

    Call it before the import of ``package``, whose extension module acquires the GIL for the first
    interpreter, while the importing thread holds the GIL of another one.
    """
    if not is_main_interpreter():
        raise FailedPrecondition(
            f"plugrt needs {package}, whose import waits for ever in an interpreter other than "
            "the first of its process, as this one is; use plugrt in the first (under mod_wsgi "
            "with WSGIApplicationGroup %{GLOBAL}), or in a process of its own"
        )


def current_frames() -> dict[int, FrameType]:
    """Returns the innermost frame of each thread, by its identifier: ``sys._current_frames()``.

    Prevents a garbage collection meanwhile: CPython up to 3.12 holds a lock that the deallocation
    of a ``threading.local`` acquires on the same thread (https://github.com/python/cpython/issues/106883).
    """
    # Workaround for cpython-106883
    was_enabled = gc.isenabled()
    try:  # an interrupt may come when the collector has been disabled
        gc.disable()
        return sys._current_frames()
    finally:
        if was_enabled:
            gc.enable()


def is_entered(test: Callable[[FrameType], bool]) -> bool:
    """Whether another thread is inside a function whose frame passes the test."""
    here = threading.get_ident()
    found: FrameType | None
    for thread, found in current_frames().items():
        while thread != here and found is not None:
            if test(found):
                return True
            found = found.f_back
    return False


def wait_while(question: Callable[[], bool], seconds: float) -> bool:
    """Calls a condition until it is False or the time is over; returns whether it became False."""
    end = time.monotonic() + seconds
    while question():
        if time.monotonic() > end:
            return False
        time.sleep(0.001)
    return True
