"""Which line of the user's code is running."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

_PACKAGE = str(Path(__file__).parent.parent)


def user_frame() -> FrameType | None:
    """Returns the innermost running frame that is not plugrt's own."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return frame
