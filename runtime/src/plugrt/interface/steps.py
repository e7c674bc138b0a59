"""Launches and reads of a backend as functions that the compiled core calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from typing import Any

MakeScratch = Callable[[], tuple[Any, Any] | None]
"""Returns an argument of launches, and its memory: see `LaunchSteps.make_scratch`."""


@dataclass(frozen=True, slots=True)
class LaunchSteps:
    """`LoadedExecutable.launcher` as functions that the core calls without Python code.

    The launcher's result for a list of arguments is ``take(launch(arguments), *take_arguments)``,
    with at most two ``take_arguments``. All arguments must be of exactly ``argument_class``. While
    an object in ``unless`` is not empty (for example after the executable was deleted), the
    launcher is called instead. ``explain(error, arguments)`` returns the exception to raise for one
    that ``launch`` or ``take`` raised.

    A launch consumes the arguments numbered in ``donated``: after it, ``delete(argument)`` is
    called for each whose ``is_deleted(argument)`` is not true. ``tidy()`` is called after each
    thousand launches, and frees the runtime's records of them. With ``waits_for_uses``, a launch
    waits until other launches that use its donated arguments have begun, and those may wait for it;
    so an argument to which anything else refers is copied first.

    ``make_scratch(numbers)`` returns, for each of these arguments, a function that returns a new
    argument and its memory (an object with a writable buffer of Python's protocol) or None. It
    returns None if these arguments must be put, as those in ``donated``. Host values are written to
    the memory, in row-major order, for successive launches, each time after ``is_ready(result)``
    was true for all results of the launch before.
    """

    launch: Callable[[list[Any]], object]
    take: Callable[..., Sequence[object]]
    take_arguments: tuple[object, ...]
    argument_class: type
    unless: tuple[Sized, ...]
    explain: Callable[[Exception, list[Any]], Exception]
    donated: tuple[int, ...] = ()
    is_deleted: Callable[[Any], bool] | None = None
    delete: Callable[[Any], object] | None = None
    tidy: Callable[[], object] | None = None
    waits_for_uses: bool = False
    make_scratch: Callable[[Sequence[int]], Sequence[MakeScratch] | None] | None = None
    is_ready: Callable[[Any], bool] | None = None


@dataclass(frozen=True, slots=True)
class HeldForm:
    """Objects that launches return in place of `Shards`, for arrays of one type and memory.

    ``open(held)`` returns their `Shards`. The other fields implement `Shards.to_host` for an array
    on one device as functions that the compiled core calls without Python code. If
    ``is_ready(held)`` is not true for an object of exactly ``held_class``, ``wait(held)`` waits
    until it is. ``view(held)``, called while ``lock`` (a `threading.Lock` or ``RLock``) is held,
    returns an object with the contents as a buffer of Python's protocol, in row-major order; if
    ``view`` is `memoryview`, the core uses the buffer of ``held`` itself and makes no memoryview.
    If one of them raises, if the buffer has another size, or while an object in ``unless`` is not
    empty, `to_host` is called instead, which raises clear errors. If ``view`` is None it is always
    called.
    """

    open: Callable[[Any], Sequence[Any]]
    held_class: type
    view: Callable[[Any], object] | None = None
    is_ready: Callable[[Any], bool] | None = None
    wait: Callable[[Any], object] | None = None
    lock: Any = None
    unless: tuple[Sized, ...] = ()
