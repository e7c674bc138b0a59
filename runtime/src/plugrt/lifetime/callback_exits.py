"""`SystemExit`, `KeyboardInterrupt` and the like, raised by a Python function that a program calls.

A library reports a failed call to the program's caller as a status with a text, not as an
exception. plugrt raises `Internal` with that text for an `Exception`. An exception that shall end
the process or a test must pass handlers of errors, so the caller gets the exception object itself.
The same holds for an exception of a signal handler that runs during the call, as for a time-out.
"""

from __future__ import annotations

import threading
from collections import deque

from plugrt.errors import Internal, PjrtError
from plugrt.lifetime.interruptions import is_interruption

# Process-wide: a library in C passes only the error's text on; it identifies the exception.
_exits: deque[tuple[str, BaseException]] = deque(maxlen=16)
"""Texts of failures with their exceptions; several results of a launch may raise the same one."""
# Process-wide: exported plugins need not know which host called them.
_hosts: set[str] = set()
"""The libraries that plugrt started here as their host: it calls `raise_exit` for errors."""


def take_exits(library: str) -> None:
    """Records that plugrt is the host of a library in this process."""
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
    """Keeps a function's exception for `raise_exit`, if it is an exit or from a signal handler.

    ``message`` is the text of the launch's error, which names the function and the user's line.
    Returns True if it is kept, this is the main thread, and no host calls `raise_exit`.
    """
    if not isinstance(raised, Exception) or is_interruption(raised):
        # The traceback's frames would keep the arguments alive; the text names their lines.
        _exits.append((message, raised.with_traceback(None)))
        return not _hosts and threading.current_thread() is threading.main_thread()
    return False


def raise_exit(error: Exception) -> None:
    """Raises the kept exception whose text ``error`` contains, if there is one."""
    if not _exits:
        return
    said = str(error)
    # jaxlib sometimes puts the failure of another thread's launch before this one's.
    at, _, raised = max((said.rfind(message), i, x) for i, (message, x) in enumerate([*_exits]))
    if at >= 0:
        raise raised.with_traceback(None) from error
