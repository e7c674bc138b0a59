"""Launches and reads of a backend as functions that the compiled core calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from typing import Any

MakeScratch = Callable[[], tuple[Any, Any] | None]
"""Returns an argument of launches, and its memory: see `LaunchSteps.make_scratch`."""


@dataclass(frozen=True, slots=True)
class LaunchSteps:
    """`LoadedExecutable.launcher` as functions for the compiled core: no Python code runs between.

    ``take(launch(arguments), *take_arguments)``, of which there are at most two, is what the
    launcher returns for a list of arguments, which must all be of exactly ``argument_class``.
    While an object in ``unless`` is not empty, as after the executable was deleted, the launcher is
    called instead. ``explain(error, arguments)`` returns the exception to raise for one that
    ``launch`` or ``take`` raised.

    A launch takes the arguments numbered in ``donated``: of these, ``delete(argument)`` is called
    after it where ``is_deleted(argument)`` is not true. ``tidy()`` is called after each thousand
    launches, and gives back what the runtime keeps of them. With ``waits_for_uses``, a launch waits
    until others have begun that use what it takes, and they may wait for it: so a copy is taken of
    what anything else refers to.

    ``make_scratch(numbers)`` returns, for each of these arguments, a function that returns a new
    argument and its memory, an object with a writable buffer of Python's protocol, or None; it
    returns None where these arguments are put, as those in ``donated``. A host value is written to
    the memory, in row-major order, for one launch after the other, each time after
    ``is_ready(result)`` was true of all results of the last one.
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
    """The objects that launches return in place of `Shards`, for arrays of one type and memory.

    ``open(held)`` returns their `Shards`. The other fields are `Shards.to_host` of an array on one
    device as functions for the compiled core: no Python code runs between. Where ``is_ready(held)``
    of an object of exactly ``held_class`` is not true, ``wait(held)`` returns once it is;
    ``view(held)``, called under the `threading.Lock` or ``RLock`` that is ``lock``, is an object
    that has the contents as a buffer of Python's protocol, in row-major order; with `memoryview`
    for ``view`` the buffer is that of ``held``, and no memoryview is made. Whatever raises, or has
    another size, and while an object in ``unless`` is not empty, `to_host` is called instead, which
    explains errors. With ``view`` None it is always called.
    """

    open: Callable[[Any], Sequence[Any]]
    held_class: type
    view: Callable[[Any], object] | None = None
    is_ready: Callable[[Any], bool] | None = None
    wait: Callable[[Any], object] | None = None
    lock: Any = None
    unless: tuple[Sized, ...] = ()
