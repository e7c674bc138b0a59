"""`current_frames`: what each thread of the process is running."""

from __future__ import annotations

import gc
import sys
from types import FrameType


def current_frames() -> dict[int, FrameType]:
    """Returns the innermost frame of each thread, by its identifier: ``sys._current_frames()``.

    Without a garbage collection meanwhile: CPython up to 3.12 holds a lock that the end of a
    ``threading.local`` waits for, on the same thread (https://github.com/python/cpython/issues/106883).
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return sys._current_frames()
    finally:
        if was_enabled:
            gc.enable()
