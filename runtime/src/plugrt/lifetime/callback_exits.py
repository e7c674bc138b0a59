"""`SystemExit`, `KeyboardInterrupt` and the like, raised by a Python function that a program calls.

A library hands the caller of a program no exception but a status with a text. An `Exception` is
then `Internal`, with that text. An exception that is to end the process or a test is not for
handlers of errors, and reaches the caller as the object that it is. So does an exception that a
signal's handler raises meanwhile, as for a time-out.
"""

from __future__ import annotations

import threading
from collections import deque

from plugrt.errors import Internal, PjrtError
from plugrt.lifetime.interruptions import is_interruption

# Process-wide: the error crosses a library in C as text alone; the exception is found again by it.
_exits: deque[tuple[str, BaseException]] = deque(maxlen=16)
"""Texts of failures with their exceptions; several results of a launch may request the same one."""
# Process-wide: exported plugins need not know which host called them.
_hosts: set[str] = set()
"""The libraries that plugrt started here as their host: it calls `raise_exit` for errors."""


def take_exits(library: str) -> None:
    """Notes that plugrt is the host of a library in this process."""
    _hosts.add(library)


def as_failure(title: str, raised: BaseException, said: str | None = None) -> PjrtError:
    """Returns the error of a launch whose callback raised; records exits for `raise_exit`.

    Returns a `PjrtError` unchanged; ``said`` is the description, by default class and text.
    """
    if isinstance(raised, PjrtError):
        return raised
    said = f"{type(raised).__name__}: {raised}" if said is None else said
    failure = Internal(f"{title} raised {said}")
    keep_exit(failure.message, raised)
    failure.__cause__ = raised
    return failure


def keep_exit(message: str, raised: BaseException) -> bool:
    """Keeps what a function raised for `raise_exit`, unless it is an `Exception` of its own.

    ``message`` is the text of the launch's error, which names the function and the user's line.
    Returns True where it is kept, this is the main thread, and no host calls `raise_exit`.
    """
    if not isinstance(raised, Exception) or is_interruption(raised):
        # Its frames have the function's arguments; the text has their lines.
        _exits.append((message, raised.with_traceback(None)))
        return not _hosts and threading.current_thread() is threading.main_thread()
    return False


def raise_exit(error: Exception) -> None:
    """Raises the exception with which a function wanted to end the process, if ``error`` refers to
    one.
    """
    if not _exits:
        return
    said = str(error)
    # jaxlib sometimes puts the failure of another thread's launch before this one's.
    at, _, raised = max((said.rfind(message), i, x) for i, (message, x) in enumerate([*_exits]))
    if at >= 0:
        raise raised.with_traceback(None) from error
