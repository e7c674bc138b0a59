"""`describe_caller`: which module of others called plugrt."""

from __future__ import annotations

import os
import sys


def describe_caller() -> str:
    """Returns module, file and line of the caller outside this package."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == "plugrt":
        frame = frame.f_back
    file = os.path.basename(frame.f_code.co_filename)
    return f"{frame.f_globals.get('__name__', 'a program')} ({file}:{frame.f_lineno})"
