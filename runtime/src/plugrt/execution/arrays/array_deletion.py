"""`Deletable`: deletes an array, alone or beside others that hold its buffers; `Deletion`: why."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from types import CodeType
from typing import TYPE_CHECKING, NoReturn

from plugrt.errors import DeletedBuffer
from plugrt.execution.arrays import sharers
from plugrt.execution.arrays.array_contents import Contents
from plugrt.execution.arrays.sharers import (
    find_sharers,
    keep_ended,
    keep_sharer,
    leave_sharers,
    tie_parts,
)
from plugrt.frames.argument_errors import with_checked_methods
from plugrt.frames.traceback_filter import our_files, user_frame
from plugrt.native.native_core import core


@with_checked_methods
class Deletable(Contents):
    """The methods of `Array` that give its memory back."""

    __slots__ = ()

    if TYPE_CHECKING:
        __weakref__: object
        _sharers: list[weakref.ref[object]]
        _lives: tuple[object, ...]

    def delete(self) -> None:
        """Gives the memory back now, unless a result of a program, or what was put, has it as well.

        The parts of the array (``addressable_shards``) end with it, and what was made of them by
        ``make_array_from_single_device_arrays``; it ends with each of them. A second call does
        nothing; use afterwards raises.
        """
        with sharers.lock:
            held, self._shards = self._shards, None
            if held is None:
                if isinstance(loss := self._extra, Deletion):
                    self._extra = loss.copy()  # a launch that fails gives nothing back then
                    keep_ended(self, loss)
                return
            self._extra = loss = Deletion()
            shared = self._lose(loss)
        if not shared:
            for shard in self._open_shards(held):
                shard.delete()

    def is_deleted(self) -> bool:
        """Whether the array was deleted or donated."""
        held = self._shards
        return held is None or any(shard.is_deleted() for shard in self._open_shards(held))

    def _deleted_message(self) -> str:
        with sharers.lock:  # who deletes or takes it right now says why before the end
            held, loss = self._shards, self._extra
        if isinstance(loss, Deletion):
            return f"{self._what()} was {loss}; it cannot be used again"
        if held is None:
            return f"{self._what()} was deleted; it cannot be used again"
        return self._describe_shared_loss() if self.is_deleted() else self._given_back_message()

    def _describe_shared_loss(self, report: str = "") -> str:
        return (
            f"{self._what()} has no data any more, since another array of the same memory was "
            f"deleted or donated{report}; it cannot be used again"
        )

    def _given_back_message(self) -> str:
        return (
            f"{self._what()} was donated meanwhile to a launch that failed, and given back: use it "
            "again"
        )

    def _raise_deleted(self, error: DeletedBuffer) -> NoReturn:
        """Raises what explains that the backend says of a buffer that it is gone."""
        if self._shards is None:
            raise DeletedBuffer(self._deleted_message()) from error
        raise DeletedBuffer(self._describe_shared_loss(f" ({error})")) from error

    def _what(self) -> str:
        return f"the array {self._aval.tensor_type}"

    def _lose(self, loss: Deletion) -> bool:
        """Marks it as lost, and all that end with it; returns whether another has its buffers."""
        with sharers.lock:
            tied, shared = find_sharers(self)
            for other in tied:
                other._mark_lost(loss)
            self._mark_lost(loss)
        return shared

    def _keep_parts(self, parts: Sequence[object], held: object) -> None:
        """Has parts, made of what this array had when asked, ``held``, end with it."""
        with sharers.lock:
            tie_parts(self, parts)
        if self._shards is not held:  # another thread has ended it, which did not know of these
            raise DeletedBuffer(self._deleted_message())

    def _replace(self, held: object, new: Deletable) -> bool:
        """Gives the array what another of the same aval has, in place of ``held``.

        Returns whether it had that; it has not where another thread assigned or deleted meanwhile.
        """
        with sharers.lock:
            if self._shards is not held or new._shards is None:
                return False
            leave_sharers(self)
            replace_held(self, new._shards)
            if getattr(new, "_sharers", None) is not None:  # as where no element was picked
                keep_sharer(new, self)
        return True

    def _mark_lost(self, loss: Deletion) -> None:
        self._shards, self._extra = None, loss


def replace_held(array: Deletable, held: object) -> None:
    """Replaces the buffers of an array, and forgets its host copy; in the core in one step."""
    array._shards, array._extra = held, None


if core is not None and not TYPE_CHECKING:
    replace_held = core.replace_held


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
