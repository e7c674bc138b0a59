"""`launch_holding`: launches with buffers that no thread deletes or donates while it is being made.

The devices of a launch may wait for each other. Where one of them refuses its argument, because
another thread has taken it since the launch began, the others wait for ever (xla-cpu-pjrt 0.0.1).
So a launch on several devices holds its arguments on all of them before the first one launches: a
deletion meanwhile is made when the last hold ends. A launch on any number of devices says which
buffers it takes: one on several refuses these, and one that would take what is held has the library
copy it. Nothing waits: a program's function of Python may delete the program's arguments.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, TypeVar

from plugrt.capi.buffer_base import BufferBase
from plugrt.capi.donation import Donation
from plugrt.compiled_core import core
from plugrt.errors import DeletedBuffer, PjrtError
from plugrt.interface import ExecuteOptions, Shards

T = TypeVar("T")
Buffers = tuple[Any, ...]

_lock = threading.RLock()  # a finaliser may delete or launch meanwhile


def _renew_lock() -> None:
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)  # a thread that the child lacks may have it


def hold_in_python(held: Buffers, taken: Buffers) -> int:
    """Holds buffers, and says what is taken; -1, or the index in ``held + taken`` of a refusal."""
    with _lock:
        for i, buffer in enumerate(held):
            if getattr(buffer, "_takers", 0):
                return i
        for i, buffer in enumerate(taken, len(held)):
            if getattr(buffer, "_holds", 0):
                return i
        for buffer in held:
            buffer._holds = getattr(buffer, "_holds", 0) + 1
        for buffer in taken:
            buffer._takers = getattr(buffer, "_takers", 0) + 1
    return -1


def release_in_python(held: Buffers, taken: Buffers) -> None:
    """Ends what `hold_in_python` began, and makes the deletions that came meanwhile."""
    doomed = []
    with _lock:
        for buffer in taken:
            buffer._takers -= 1
        for buffer in held:
            buffer._holds -= 1
            if not buffer._holds and getattr(buffer, "_doomed", False):
                buffer._doomed = False
                doomed.append(buffer)
    for buffer in doomed:
        try:
            buffer._delete_now()
        except PjrtError as error:  # not of the launch, which has results or its own
            report = SimpleNamespace(
                exc_type=type(error), exc_value=error, exc_traceback=error.__traceback__,
                err_msg="A deletion that waited for a launch failed in", object=buffer,
            )  # fmt: skip
            sys.unraisablehook(report)


def delete_later_in_python(buffer: Any) -> bool:
    """Whether a buffer is held, which is then deleted when the last hold ends."""
    with _lock:
        if not getattr(buffer, "_holds", 0):
            return False
        buffer._doomed = True
        return True


_hold: Callable[[Buffers, Buffers], int] = core.hold_buffers if core else hold_in_python
_release: Callable[[Buffers, Buffers], None] = core.release_buffers if core else release_in_python
delete_later: Callable[[Any], bool] = core.delete_later if core else delete_later_in_python


def launch_holding(
    launch: Callable[[Sequence[Shards], ExecuteOptions | None], T],
    arguments: Sequence[Shards],
    options: ExecuteOptions | None,
    devices: int,
    donation: Donation | None,
) -> T:
    """Returns ``launch(arguments, options)``, while what it needs is held.

    Raises `DeletedBuffer` for an argument that a launch of another thread takes.
    """
    held = _buffers(arguments) if devices > 1 else ()
    kept = options.non_donatable_input_indices if options else ()
    taken = donation.taken(arguments, kept) if donation else {}
    buffers = tuple(buffer for i in taken for buffer in _buffers(arguments[i : i + 1]))
    if not held and not buffers:
        return launch(arguments, options)
    found = _hold(held, buffers)
    if found >= len(held):
        used = [i for i in taken if any(b is buffers[found - len(held)] for b in arguments[i])]
        identifier = options.launch_id if options else 0
        copying = ExecuteOptions(identifier, (*kept, *used))
        made = launch_holding(launch, arguments, copying, devices, donation)
        assert donation is not None
        donation.mark_copied([arguments[i] for i in used])
        return made
    if found >= 0:
        raise DeletedBuffer(
            f"this buffer ({held[found]._spec.tensor_type} on {held[found].device!r}) is being "
            "donated to a launch of another thread"
        )
    try:
        return launch(arguments, options)
    finally:
        _release(held, buffers)


def _buffers(arguments: Sequence[Shards]) -> Buffers:
    """Returns those of all devices; the launch refuses what has none."""
    try:
        return tuple(b for shards in arguments for b in shards if isinstance(b, BufferBase))
    except TypeError:
        return ()
