"""The user's frames: the ones that exceptions show as they leave plugrt, and the innermost one."""

from __future__ import annotations

import functools
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from types import FrameType, TracebackType
from typing import ParamSpec, TypeVar

from plugrt.lifetime.interruptions import is_interruption
from plugrt.settings.declarations import config

P = ParamSpec("P")
R = TypeVar("R")


def _our_folders() -> tuple[str, ...]:
    """Returns the folders of plugrt and of optree, if it is imported.

    optree's frames stand between plugrt's where an operation maps over a pytree.
    """
    found = (sys.modules.get(name) for name in ("plugrt", "optree"))
    return tuple(os.path.dirname(str(each.__file__)) + os.sep for each in found if each)


class _OurFiles(dict[str, bool]):
    """Whether a file is plugrt's own, cached: each traced operation checks several frames."""

    def __missing__(self, filename: str) -> bool:
        ours = self[filename] = filename.startswith(_our_folders())
        return ours


our_files = _OurFiles()
"""By name, whether a file is of plugrt or of optree, which calls on plugrt's behalf."""
# Process-wide: modules name their files at import, for the tracebacks of all threads.
_hidden: tuple[str, ...] = ()
# Process-wide: modules name their files at import, for the tracebacks of all threads.
_shown: tuple[str, ...] = ()


def hide_frames(*files: str, but: Sequence[str] = ()) -> None:
    """Makes `filter_traceback` remove frames of files whose names have these prefixes.

    For the packages of plugrt's own backends; frames of the files in ``but`` stay.
    """
    global _hidden, _shown
    _hidden, _shown = (*_hidden, *files), (*_shown, *but)


def filter_traceback(error: BaseException) -> None:
    """Removes plugrt's frames from the traceback of an exception that is being handled.

    It does the same for the causes. A cause with only plugrt's frames is not shown, since the
    exception repeats its message; it stays the ``__context__``. A bare ``raise`` afterwards adds no
    frame. Unlike JAX, this adds no note to the exception: users' tests match messages, which
    include notes. Under ``config.traceback_filtering`` ``off`` it changes only one thing: if plugrt
    translated an exception of a signal handler, the original is raised. A handler runs between any
    two lines, and those lines may translate the class of its exception.
    """
    _raise_interruption(error)
    if config.traceback_filtering == "off":
        return
    _take_out_frames(error)
    seen = {id(error)}
    shown = error
    while (cause := _find_shown_cause(shown)) is not None and id(cause) not in seen:
        seen.add(id(cause))
        raised = cause.__traceback__ is not None
        _take_out_frames(cause)
        if raised and cause.__traceback__ is None:
            shown.__cause__ = _find_shown_cause(cause)
        else:
            shown = cause


def _raise_interruption(error: BaseException) -> None:
    """Raises the exception of a signal handler that led to ``error``, if there is one.

    It was caught in a frame of the call that ends with the error. An exception that the caller was
    handling before the call was not.
    """
    found, frames, seen = error, frames_of(error), {id(error)}
    while (before := found.__cause__ or found.__context__) is not None and id(before) not in seen:
        seen.add(id(before))
        caught = frames_of(before)
        if not caught or caught[0] not in frames:
            return
        if is_interruption(before):
            context = before.__context__
            try:
                raise before
            finally:
                before.__context__ = context
        found = before
        frames += caught


def frames_of(error: BaseException) -> list[FrameType]:
    """Returns the frames of an exception's traceback, the outermost first."""
    found, entry = [], error.__traceback__
    while entry is not None:
        found.append(entry.tb_frame)
        entry = entry.tb_next
    return found


def _find_shown_cause(error: BaseException) -> BaseException | None:
    """Returns the exception that Python shows before this one."""
    if error.__cause__ is not None or error.__suppress_context__:
        return error.__cause__
    return error.__context__


def _take_out_frames(error: BaseException) -> None:
    kept: list[TracebackType] = []
    entry, count = error.__traceback__, 0
    while entry is not None:
        count += 1
        if not _is_hidden(entry.tb_frame.f_code.co_filename):
            kept.append(entry)
        entry = entry.tb_next
    if len(kept) == count:
        return
    last: TracebackType | None = None
    for entry in reversed(kept):
        # None where a signal handler raised at an instruction that is of no line.
        line = entry.tb_lineno or entry.tb_frame.f_code.co_firstlineno
        last = TracebackType(last, entry.tb_frame, entry.tb_lasti, line)
    error.__traceback__ = last


def _is_hidden(filename: str) -> bool:
    if our_files[filename]:
        return True
    return filename.startswith(_hidden) and not filename.startswith(_shown)


def with_user_frames(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: applies `filter_traceback` to the exceptions of a public function.

    Functions on the hot path call it themselves: a ``try`` costs nothing unless something is
    raised.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except Exception as error:  # raised again without plugrt's frames
            filter_traceback(error)
            raise

    return call


def user_frame() -> FrameType | None:
    """Returns the innermost running frame that is neither plugrt's own nor optree's."""
    frame: FrameType | None = sys._getframe(2)  # the caller is plugrt's own code
    while frame is not None and our_files[frame.f_code.co_filename]:
        frame = frame.f_back
    return frame


def describe_call_site() -> str:
    """Returns ``, called at FILE:LINE`` for a message, or nothing where no user's code runs."""
    frame = user_frame()
    return f", called at {frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warns with the user's line as the place, however deep in plugrt the cause is."""
    level, frame = 2, sys._getframe(1).f_back
    while frame is not None and our_files[frame.f_code.co_filename]:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level + 1)
