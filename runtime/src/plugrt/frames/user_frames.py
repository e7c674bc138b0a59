"""The user's stack frame: for source locations, messages and warnings."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

from plugrt.frames.traceback_filter import OUR_FOLDERS
from plugrt.frames.traceback_filter import our_files as _ours


def user_frame() -> FrameType | None:
    """Returns the innermost running frame that is neither plugrt's own nor optree's."""
    frame: FrameType | None = sys._getframe(2)  # the caller is plugrt's own code
    while frame is not None and _ours[frame.f_code.co_filename]:
        frame = frame.f_back
    return frame


def describe_call_site() -> str:
    """Returns ``, called at FILE:LINE`` for a message, or nothing where no user's code runs."""
    frame = user_frame()
    return f", called at {frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warns with the user's line as the place, however deep in plugrt the cause is."""
    level, frame = 2, sys._getframe(1).f_back
    while frame is not None and frame.f_code.co_filename.startswith(OUR_FOLDERS):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level + 1)
