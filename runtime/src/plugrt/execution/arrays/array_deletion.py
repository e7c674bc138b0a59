"""`Deletable`: deletes an array, also one that shares its buffers; `Deletion`: the reason."""

from __future__ import annotations

import sys
import weakref
from _thread import get_ident
from collections.abc import Sequence
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from math import prod
from sys import getrefcount
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from plugrt.errors import DeletedBuffer
from plugrt.execution.arrays import sharers
from plugrt.execution.arrays.array_contents import Contents
from plugrt.execution.arrays.sharers import (
    Lives,
    find_sharers,
    forget_reads,
    keep_ended,
    keep_sharer,
    leave_sharers,
    tie_parts,
)
from plugrt.frames.argument_errors import with_checked_methods
from plugrt.frames.traceback_filter import our_files, user_frame
from plugrt.native.native_core import core

_LARGE = 1 << 17  # copying fewer bytes is faster than checking who else uses the buffers
_LOOK_SECONDS = 0.1  # interval of a waiting thread's checks whether the assignment still runs
_YIELDS = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR
_LENT = 3  # references to buffers: an array's, a variable's, and `getrefcount`'s own


@with_checked_methods
class Deletable(Contents):
    """The methods of `Array` that free its memory."""

    __slots__ = ()

    if TYPE_CHECKING:
        __weakref__: object
        _sharers: list[weakref.ref[object]]
        _lives: Lives
        _is_viewed: bool

    def delete(self) -> None:
        """Frees the memory now, unless a program's result or a result of `device_put` shares it.

        This also deletes the parts of the array (``addressable_shards``) and arrays made of these
        by ``make_array_from_single_device_arrays``; deleting one of them deletes this array. A
        second call does nothing; use afterwards raises.
        """
        with sharers.lock:
            if self._shards is None:
                self._await_assignment()
            held, self._shards = self._shards, None
            if held is None:
                if isinstance(loss := self._extra, Deletion):
                    self._extra = loss.copy()  # a failed launch restores only its own
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
        if held is None:
            with sharers.lock:
                self._end_interrupted()
                return self._shards is None and getattr(self, "_assignment", None) is None
        return any(shard.is_deleted() for shard in self._open_shards(held))

    def _await_held(self) -> Any:
        """Returns the buffers, after an assignment to them; raises `DeletedBuffer` without any."""
        held = self._settled()
        if held is None:
            raise DeletedBuffer(self._deleted_message())
        return held

    def _settled(self) -> Any:
        """Returns the buffers, after an assignment to them; None if there are none."""
        with sharers.lock:
            self._await_assignment()
            self._is_alone = False  # the end of the assignment has set it
            return self._shards

    def _await_assignment(self) -> None:
        """Waits for an assignment in another thread; releases the held `sharers.lock` meanwhile."""
        while True:
            self._end_interrupted()
            assignment = getattr(self, "_assignment", None)
            if assignment is None or assignment.thread == get_ident():
                return
            assignment.is_awaited = True
            sharers.assigned.wait(_LOOK_SECONDS)

    def _end_interrupted(self) -> None:
        """Ends an assignment whose frame an interrupt ended, or whose thread a fork left behind."""
        assignment = getattr(self, "_assignment", None)
        if assignment is not None and not assignment.is_under_way():
            self._end_loan(assignment.taker, assignment.made)

    def _deleted_message(self) -> str:
        with sharers.lock:  # a thread that deletes or donates it right now records the reason first
            held, loss = self._shards, self._extra
            assigned = getattr(self, "_assignment", None) is not None
        if isinstance(loss, Deletion):
            return f"{self._what()} was {loss}; it cannot be used again"
        if held is None and assigned:
            return (
                f"{self._what()} is being assigned to by this thread, and cannot be used until the "
                "assignment has ended"
            )
        if held is None:
            return f"{self._what()} was deleted; it cannot be used again"
        return self._describe_shared_loss() if self.is_deleted() else self._given_back_message()

    def _describe_shared_loss(self, report: str = "") -> str:
        return (
            f"{self._what()} has lost its buffers: another array that shares them was deleted or "
            f"donated{report}; it cannot be used again"
        )

    def _given_back_message(self) -> str:
        return (
            f"{self._what()} was donated meanwhile to a launch that failed, and has its buffers "
            "again: repeat the call"
        )

    def _raise_deleted(self, error: DeletedBuffer) -> NoReturn:
        """Raises an error that explains why the backend reports a buffer as deleted."""
        if self._shards is None:
            raise DeletedBuffer(self._deleted_message()) from error
        raise DeletedBuffer(self._describe_shared_loss(f" ({error})")) from error

    def _what(self) -> str:
        return f"the array {self._aval.tensor_type}"

    def _lose(self, loss: Deletion) -> bool:
        """Marks it and arrays tied to it as deleted; returns whether another has its buffers."""
        with sharers.lock:
            tied, shared = find_sharers(self)
            for other in tied:
                other._mark_lost(loss)
            self._mark_lost(loss)
        return shared

    def _keep_parts(self, parts: Sequence[object], held: object) -> None:
        """Registers parts, made of this array's buffers ``held``, to be deleted with it."""
        with sharers.lock:
            tie_parts(self, parts)
        if self._shards is not held and self._settled() is None:
            # Another thread deleted it before these parts were registered.
            raise DeletedBuffer(self._deleted_message())

    def _replace(self, held: object, new: Deletable) -> bool:
        """Replaces the array's buffers ``held`` by the buffers of ``new``, which has its aval.

        Returns False, changing nothing, if another thread assigned to one or deleted it meanwhile.
        """
        with sharers.lock:
            if self._shards is not held or new._shards is None:
                return False
            lives = self._take_from(new)
        if lives:
            forget_reads(lives)
        return True

    def _take_from(self, new: Deletable) -> Lives:
        """Replaces the array's buffers by ``new``'s; returns the `Life` objects that end."""
        lives = leave_sharers(self)
        shared = getattr(new, "_sharers", None) is not None  # as if the key selects no element
        size = prod(self._aval.shape) * self._aval.dtype.itemsize
        self._is_alone = not shared and size >= _LARGE  # first, so that `_held` sees it
        replace_held(self, new._shards)
        if shared:
            keep_sharer(new, self)
        return lives

    def _lend_to(self, taker: Deletable, made: Sequence[Deletable]) -> bool:
        """Removes its buffers, which ``taker`` holds as well, until `_end_loan`.

        Returns False, and changes nothing, if anything else may use them: a caller of `_held`, a
        host copy in ``_extra``, or another holder of a reference. While the
        caller's frame runs, other threads wait for the buffers; the caller puts its result into
        ``made``.
        """
        with sharers.lock:
            lent = taker._shards
            if lent is None or self._shards is not lent:
                return False
            self._assignment = Assignment(sys._getframe(1), taker, made)
            self._shards = None  # first, so that no other thread begins to use them
            if core is not None:
                core.forget_result(lent)
            read = self._extra is not None or self._is_viewed
            if read or not self._is_alone or getrefcount(lent) > _LENT:
                self._shards, self._is_alone, self._assignment = lent, False, None
                return False
        return True

    def _end_loan(self, taker: Deletable, made: Sequence[Deletable]) -> None:
        """Gives it the buffers of the array in ``made``, if any, else those ``taker`` still has."""
        lives: Lives = ()
        with sharers.lock:
            assignment = getattr(self, "_assignment", None)
            if assignment is None or assignment.taker is not taker:
                return  # another thread has ended it, because the frame had returned
            if self._shards is None:
                fits = bool(made) and made[0]._aval.sharding is self._aval.sharding
                if fits and made[0]._shards is not None:
                    lives = self._take_from(made[0])
                else:
                    self._shards, self._extra = taker._shards, taker._extra
            taker._shards = self._assignment = None
            if assignment.is_awaited:
                sharers.assigned.notify_all()
        forget_reads(lives)

    def _mark_lost(self, loss: Deletion) -> None:
        self._shards, self._extra = None, loss


def replace_held(array: Deletable, held: object) -> None:
    """Replaces the buffers of an array, and drops its host copy; in the core in one step."""
    array._shards, array._extra = held, None


if core is not None and not TYPE_CHECKING:
    replace_held = core.replace_held


class Assignment:
    """The state of an array without buffers, because the launch of an assignment writes to them.

    ``frame`` runs the assignment. An interrupt may end it at any point, and leave this object set.
    """

    __slots__ = ("_frame", "is_awaited", "made", "taker", "thread")

    def __init__(self, frame: FrameType, taker: Deletable, made: Sequence[Deletable]) -> None:
        self._frame, self.taker, self.made = frame, taker, made
        self.thread = get_ident()
        self.is_awaited = False

    def is_under_way(self) -> bool:
        """Whether the frame is on the stack of its thread; a forked child has no other threads.

        Also True if that is unknown: a frame of a generator has no ``f_back`` after a ``yield``.
        """
        frame = sys._current_frames().get(self.thread)
        while frame is not None and frame is not self._frame:
            behind = frame.f_back
            if behind is None and frame.f_code.co_flags & _YIELDS:
                return True
            frame = behind
        return frame is not None


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
    """The reason why an array has no data: deleted or donated to ``taker``, and the user's line."""

    __slots__ = ()

    def __init__(self, taker: str = "") -> None:
        frame = user_frame()
        self._taker = taker
        self._code = frame and frame.f_code
        self._at = frame.f_lasti if frame else 0  # converted to a line number when printed

    def copy(self) -> Deletion:
        """Returns an equal object."""
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
