"""`Deletion`: why an array has no data, for the error that says so."""

from __future__ import annotations

from types import CodeType
from typing import TYPE_CHECKING

from plugrt.frames.traceback_filter import our_files
from plugrt.frames.user_frames import user_frame
from plugrt.native.native_core import core


class PythonDeletion:
    """The slots of a `Deletion`."""

    if not TYPE_CHECKING:
        __slots__ = ("_at", "_code", "_taker")

    _at: int
    _code: CodeType | None
    _taker: str


DeletionBase = PythonDeletion
if core is not None and not TYPE_CHECKING:
    DeletionBase = core.Deletion


class Deletion(DeletionBase):
    """Why an array has no data: deleted, or donated to ``taker``, and on which line of the user."""

    __slots__ = ()

    def __init__(self, taker: str = "") -> None:
        frame = user_frame()
        self._taker = taker
        self._code = frame and frame.f_code
        self._at = frame.f_lasti if frame else 0  # to a line number when printed

    def copy(self) -> Deletion:
        """Returns another one that says the same."""
        made = Deletion.__new__(Deletion)
        made._taker, made._code, made._at = self._taker, self._code, self._at
        return made

    def __str__(self) -> str:
        code = self._code
        where = f", called at {code.co_filename}:{_line(code, self._at)}" if code else ""
        if not self._taker:
            return f"deleted{where}"
        return f"donated to {self._taker!r}{where}, which took its memory"


if core is not None:
    core.set_deletion_class(Deletion, our_files)


def _line(code: CodeType, at: int) -> int:
    """Returns the line of the instruction at a byte offset."""
    lines = [line for start, end, line in code.co_lines() if start <= at < end and line]
    return lines[0] if lines else code.co_firstlineno
