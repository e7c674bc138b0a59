"""`is_interruption`: exceptions that are the program's own, whatever code they passed."""

from __future__ import annotations

import functools
import signal
from typing import Any


def is_interruption(error: BaseException) -> bool:
    """Whether Ctrl-C, or a signal handler of the program, raised an exception.

    A handler runs between any two lines of the main thread, a plugin's among them: its ``sys.exit``
    or its timeout is no fault of the plugin, and must reach the program.
    """
    if isinstance(error, KeyboardInterrupt):
        return True
    handlers = {_code_of(signal.getsignal(number)) for number in signal.valid_signals()}
    step = error.__traceback__
    while step is not None:
        if step.tb_frame.f_code in handlers:
            return True
        step = step.tb_next
    return False


def _code_of(handler: Any) -> Any:
    """Returns the code that runs for a handler; None where that is none of Python's."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    if not hasattr(handler, "__code__"):
        handler = getattr(handler, "__func__", None) or getattr(type(handler), "__call__", None)  # noqa: B004
    return getattr(handler, "__code__", None)
