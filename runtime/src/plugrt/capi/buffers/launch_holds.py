"""`launch_holding`: launches with buffers that no other thread can delete or donate meanwhile.

The devices of a launch may wait for each other: if one of them refuses its argument, because
another thread has donated it since the launch began, the others wait for ever (xla-cpu-pjrt 0.0.1).
On one device, too, a launch that reads a buffer and one that donates it may both wait for ever,
under JAX as well. So a launch holds its arguments on all devices before it starts on the first: a
deletion is postponed until the last hold ends. It also marks the buffers that it donates: other
launches refuse these, and a launch that would donate a held buffer has the library copy it. No
thread waits, because a Python function of the program may delete the program's arguments.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

from plugrt import interface
from plugrt.capi.buffers.buffer_base import BufferBase
from plugrt.capi.buffers.donated_arguments import DonatedArguments
from plugrt.errors import DeletedBuffer, PjrtError
from plugrt.interface import Shards
from plugrt.lifetime.forks import call_in_child
from plugrt.native.native_core import core

if TYPE_CHECKING:
    from plugrt.capi.abi._abi import CData

T = TypeVar("T")
Buffers = tuple[Any, ...]

# Process-wide: an array may be an argument of launches of several clients.
_lock = threading.RLock()  # a finaliser may delete or launch meanwhile


@call_in_child  # a thread that the child lacks may hold it
def _renew_lock() -> None:
    global _lock
    _lock = threading.RLock()


# Workaround for xla-launch-holds
class _Hold:
    """The marks of one launch on the buffers that it reads or donates; they end together."""

    __slots__ = ("is_over",)

    def __init__(self) -> None:
        self.is_over = False


def call_holding_in_python(
    held: Buffers, taken: Buffers, function: Callable[..., T], *arguments: object
) -> tuple[int, T | None]:
    """Returns -1 and ``function(*arguments)``, called while buffers are held and taken.

    If a buffer refuses, returns its index in ``held + taken``, and None. Deletions requested
    meanwhile are made at the end. An interrupt between any two steps leaves nothing held.
    """
    hold = _Hold()
    try:
        refused = _hold(hold, held, taken)
        return (-1, function(*arguments)) if refused < 0 else (refused, None)
    finally:
        hold.is_over = True  # first: a call could run a signal handler before this line
        _delete_doomed(held)


def _hold(hold: _Hold, held: Buffers, taken: Buffers) -> int:
    """Adds a hold to the buffers; returns -1, or the index of a buffer that refuses."""
    with _lock:
        for i, buffer in enumerate(held):
            if _under_way(buffer, "_takers"):
                return i
        for i, buffer in enumerate(taken, len(held)):
            if _under_way(buffer, "_holds"):
                return i
        for buffer in held:
            buffer._holds = (*_under_way(buffer, "_holds"), hold)
        for buffer in taken:
            buffer._takers = (*_under_way(buffer, "_takers"), hold)
    return -1


def _under_way(buffer: CData, name: str) -> list[_Hold]:
    return [hold for hold in getattr(buffer, name, ()) if not hold.is_over]


def _delete_doomed(buffers: Buffers) -> None:
    """Makes the deletions that were requested while buffers were held."""
    with _lock:
        doomed = [
            b for b in buffers if getattr(b, "_doomed", False) and not _under_way(b, "_holds")
        ]
        for buffer in doomed:
            buffer._doomed = False
    _delete_all(doomed)


def _delete_all(buffers: list[Any]) -> None:
    """Deletes all of them, also if one deletion is interrupted."""
    try:
        while buffers:
            _delete_now(buffers.pop())
    finally:
        if buffers:
            _delete_all(buffers)


def _delete_now(buffer: Any) -> None:
    try:
        buffer._delete_now()
    except PjrtError as error:  # not an error of the launch
        report = SimpleNamespace(
            exc_type=type(error), exc_value=error, exc_traceback=error.__traceback__,
            err_msg="A deletion that waited for a launch failed in", object=buffer,
        )  # fmt: skip
        sys.unraisablehook(report)


def delete_later_in_python(buffer: Any) -> bool:
    """Returns whether a buffer is held; if so, it is deleted when the last hold ends."""
    with _lock:
        if not _under_way(buffer, "_holds"):
            return False
        buffer._doomed = True
        return True


_call_holding: Callable[..., tuple[int, Any]] = (
    core.call_holding if core else call_holding_in_python
)
delete_later: Callable[[object], bool] = core.delete_later if core else delete_later_in_python


def launch_holding(
    launch: Callable[[Sequence[Shards], interface.ExecuteOptions | None], T],
    arguments: Sequence[Shards],
    options: interface.ExecuteOptions | None,
    donation: DonatedArguments | None,
) -> T:
    """Returns ``launch(arguments, options)`` and holds its buffers meanwhile.

    Raises `DeletedBuffer` for an argument that a launch of another thread donates.
    """
    held = _buffers(arguments)
    kept = options.non_donatable_input_indices if options else ()
    taken = donation.taken(arguments, kept) if donation else {}
    buffers = tuple(buffer for i in taken for buffer in _buffers(arguments[i : i + 1]))
    found, results = _call_holding(held, buffers, launch, arguments, options)
    if found >= len(held):
        used = [i for i in taken if any(b is buffers[found - len(held)] for b in arguments[i])]
        identifier = options.launch_id if options else 0
        copying = interface.ExecuteOptions(identifier, (*kept, *used))
        copied = launch_holding(launch, arguments, copying, donation)
        assert donation is not None
        donation.mark_copied([arguments[i] for i in used])
        return copied
    if found >= 0:
        raise DeletedBuffer(
            f"this buffer ({held[found]._spec.tensor_type} on {held[found].device!r}) is being "
            "donated to a launch of another thread"
        )
    made: T = results
    return made


def _buffers(arguments: Sequence[Shards]) -> Buffers:
    """Returns the buffers on all devices; the launch itself refuses arguments without any."""
    try:
        return tuple(b for shards in arguments for b in shards if isinstance(b, BufferBase))
    except TypeError:
        return ()
