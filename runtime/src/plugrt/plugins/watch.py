"""`watch`: a warning that names what a step waits for when the step takes long."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

logger = logging.getLogger("plugrt.plugins")


@contextmanager
def watch(what: str, seconds: float, hint: str = "") -> Iterator[None]:
    """Warns once if the block takes longer than ``seconds`` (0 means never).

    The warning says ``what`` is going on, where its thread is, and ``hint``. Nothing is
    interrupted: native code cannot be, and Python code may hold locks.
    """
    if seconds <= 0:
        yield
        return
    thread = threading.get_ident()
    timer = threading.Timer(seconds, _warn, (what, seconds, thread, hint))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _warn(what: str, seconds: float, thread: int, hint: str) -> None:
    where = _position(thread)
    logger.warning(
        "%s has taken more than %g s%s%s", what, seconds,
        f"; it is in {where}" if where else "", f"; {hint}" if hint else "",
    )  # fmt: skip


def _position(thread: int) -> str:
    """Returns the function, file and line of the innermost frame outside the import system."""
    frame = sys._current_frames().get(thread)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith("<frozen"):
            return f"{code.co_name} ({os.path.basename(code.co_filename)}:{frame.f_lineno})"
        frame = frame.f_back
    return ""
