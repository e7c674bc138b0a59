"""`warn_if_slow`: warns of a plugin that loads or starts slowly, and says where it is."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from plugrt.lifetime.main_interpreter import current_frames
from plugrt.lifetime.thread_work import start_thread
from plugrt.plugins.log import logger


@contextmanager
def warn_if_slow(what: str, seconds: float, hint: str = "") -> Iterator[None]:
    """Warns once if the block runs for more than ``seconds`` (0 means never).

    The warning states ``what`` is going on, where its thread is, and ``hint``. The block is not
    interrupted: native code cannot be, and Python code may hold locks.
    """
    if seconds <= 0:
        yield
        return
    thread = threading.get_ident()
    in_block = threading.Lock()

    def watch() -> None:
        if not in_block.acquire(timeout=seconds):
            _warn(what, seconds, thread, hint)

    in_block.acquire()
    try:
        start_thread(watch)
        yield
    finally:
        in_block.release()


def _warn(what: str, seconds: float, thread: int, hint: str) -> None:
    where = _position(thread)
    logger.warning(
        "%s has taken more than %g s%s%s", what, seconds,
        f"; it is in {where}" if where else "", f"; {hint}" if hint else "",
    )  # fmt: skip


def _position(thread: int) -> str:
    """Returns the function, file and line of the innermost frame outside the import system."""
    frame = current_frames().get(thread)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith("<frozen"):
            return f"{code.co_name} ({os.path.basename(code.co_filename)}:{frame.f_lineno})"
        frame = frame.f_back
    return ""
