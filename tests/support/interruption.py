"""`Interruption`: an interrupt at a line of a module, so that a test can try each of them."""

from __future__ import annotations

import re
from pathlib import Path
from types import FrameType
from typing import Any


class Interruption:
    """Raises `KeyboardInterrupt` at one line of what a module runs: the n-th that it comes to.

    Not where Python looks for no signals: where the block of a ``with`` or a ``try`` has ended,
    until something is called.
    """

    def __init__(self, filename: str, line: int) -> None:
        self._filename, self._left = filename, line
        self._lines = Path(filename).read_text().splitlines()
        self._entered = set[tuple[FrameType, int]]()
        self.came = False

    def __call__(self, frame: FrameType, event: str, arg: Any) -> Any:
        if frame.f_code.co_filename != self._filename:
            return None
        if event == "line" and not self.came and not self._ends_block(frame):
            self._left -= 1
            if self._left < 0:
                self.came = True
                raise KeyboardInterrupt
        return self

    def _ends_block(self, frame: FrameType) -> bool:
        *before, line = self._lines[: frame.f_lineno]
        if not line.lstrip().startswith("with "):
            while re.fullmatch(r" *if \w+:", before[-1]):
                before.pop()
            return before[-1].strip() == "finally:"
        is_entered = (frame, frame.f_lineno) in self._entered
        self._entered.add((frame, frame.f_lineno))
        return is_entered
