"""`Log`: logs each step of finding, choosing and starting plugins.

Steps go to the standard logger ``plugrt.plugins`` at DEBUG, under PLUGRT_TRACE_PLUGINS=1
also to stderr. Log records have the candidate as their attribute ``row``.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from plugrt.errors import escape_controls
from plugrt.lifetime.main_interpreter import current_frames
from plugrt.lifetime.thread_work import start_thread

if TYPE_CHECKING:
    from plugrt.plugins.record import Record
    from plugrt.settings.declarations import Config

logger = logging.getLogger("plugrt.plugins")


class Log:
    """Logs steps and warnings; a warning with a key is given once."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._given: set[str] = set()

    def step(self, text: str, row: Record | None = None) -> None:
        """Logs one step, before it is done if it runs a plugin's code."""
        logger.debug("%s", text, extra={"row": row})
        if self._config.trace_plugins:
            print(f"plugrt: {escape_controls(text)}", file=sys.stderr, flush=True)

    def warn_once(self, key: str, text: str) -> None:
        """Warns in one line, once for each key."""
        if key not in self._given:
            self._given.add(key)
            logger.warning("%s", " ".join(text.split()))


@contextmanager
def warn_if_slow(what: str, seconds: float, hint: str = "") -> Iterator[None]:
    """Warns once if the block takes longer than ``seconds`` (0 means never).

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
