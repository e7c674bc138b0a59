"""`SystemExit`, `KeyboardInterrupt` and the like, raised by a Python function that a program calls.

A library hands the caller of a program no exception but a status with a text. An `Exception` is
then `Internal`, with that text; what is raised to end the process or a test is not for handlers of
errors, and reaches the caller as the object that it is.
"""

from __future__ import annotations

from collections import deque

# Process-wide: the error crosses a library in C as text alone; the exception is found again by it.
_exits: deque[tuple[str, BaseException]] = deque(maxlen=16)
"""Texts of failures, and what was raised; several results of a launch may each ask for it."""


def keep_exit(message: str, raised: BaseException) -> None:
    """Keeps what a function raised for `raise_exit`, unless it is an `Exception`.

    ``message`` is the text of the launch's error, which names the function and the user's line.
    """
    if not isinstance(raised, Exception):
        # Its frames have the function's arguments; the text has their lines.
        _exits.append((message, raised.with_traceback(None)))


def raise_exit(error: Exception) -> None:
    """Raises what a function raised to end the process, if ``error`` tells of it."""
    if not _exits:
        return
    said = str(error)
    # jaxlib at times puts the failure of another thread's launch before that of this one.
    at, _, raised = max((said.rfind(message), i, x) for i, (message, x) in enumerate([*_exits]))
    if at >= 0:
        raise raised.with_traceback(None) from error
