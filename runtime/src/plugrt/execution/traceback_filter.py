"""`filter_traceback`: exceptions that leave plugrt show the user's frames, as JAX's do."""

from __future__ import annotations

from types import TracebackType

from plugrt.execution.user_frames import is_ours
from plugrt.settings.declarations import config


def filter_traceback(error: BaseException) -> None:
    """Takes plugrt's frames out of the traceback of an exception that is being handled.

    What raises it again without a name (``raise``) adds no frame of its own. Unlike JAX's, the
    exception has no note of it: tests of users match messages, and notes count there. Under
    ``config.traceback_filtering`` ``off`` nothing changes.
    """
    if config.traceback_filtering == "off":
        return
    kept: list[TracebackType] = []
    entry, count = error.__traceback__, 0
    while entry is not None:
        count += 1
        if not is_ours(entry.tb_frame.f_code.co_filename):
            kept.append(entry)
        entry = entry.tb_next
    if len(kept) == count:
        return
    last: TracebackType | None = None
    for entry in reversed(kept):
        last = TracebackType(last, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    error.__traceback__ = last
