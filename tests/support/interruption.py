"""An interrupt at a line of a module, or anywhere in a call, for tests of each place."""

from __future__ import annotations

import dis
import inspect
import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any

_RESUME = dis.opmap["RESUME"]
_CAN_GO_ON = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class Interruption:
    """Raises `KeyboardInterrupt` at the n-th line of a module that runs.

    Python does not check for signals from the end of a ``with`` or ``try`` block to the next call:
    lines between these are omitted.
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


class EntryInterruption:
    """Raises `KeyboardInterrupt` at the n-th place where Python calls signal handlers.

    Set it by ``sys.setprofile``. The places are the entry of each function, the resumption of each
    generator, and the return of each function in C to one in Python.
    """

    def __init__(self, left: int) -> None:
        self._left = left
        self.place: str | None = None
        """The place where it was raised."""

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        if self.place is None and self.is_checked(frame, event, arg):
            self._left -= 1
            if self._left < 0:
                code = frame.f_code
                after = f" after {arg!r}" if event == "c_return" else ""
                self.place = f"{code.co_filename}:{frame.f_lineno} {code.co_qualname}{after}"
                raise KeyboardInterrupt

    @staticmethod
    def is_checked(frame: FrameType, event: str, arg: Any) -> bool:
        code = frame.f_code
        if event == "c_return":
            # Called by special instructions, which do not check for signals.
            return arg not in (len, isinstance) and arg is not sys.setprofile
        if event != "call" or not code.co_flags & _CAN_GO_ON:
            return event == "call"
        instruction, argument = code.co_code[frame.f_lasti : frame.f_lasti + 2]
        return instruction == _RESUME and argument < 2  # otherwise an exception is thrown into it
