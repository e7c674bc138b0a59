"""Arrays that share buffers: which are deleted together, and which independently.

Each array has a list of weak references to the arrays that may share its buffers. If a part of it
is an array as well, it also has `Life` objects, one for each part. Arrays with a common `Life` are
deleted together, as in JAX: an array and its part, or an array made of that part. Others are
deleted independently: arguments that a program returns, arrays that were put or sliced. Callers
hold `lock`. Assigning to an array gives it other buffers: it shares no longer, its lives end, and
the traces that read it are dropped.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from plugrt.base.weak_keys import WeakKeys
from plugrt.lifetime.forks import call_in_child
from plugrt.native.native_core import core

Array = Any
"""An `Array`, whose class is above this module."""

# Process-wide: arrays of all clients share buffers by the same steps.
lock = threading.RLock()
"""Held while an array gets, loses or shares buffers: who looks finds who has them.

A finaliser may do the same meanwhile. To be read here each time: a forked child has a new one.
"""
# Process-wide: as the lock.
assigned = threading.Condition(lock)
"""Notified when an assignment in place has ended."""


@call_in_child  # a thread that it lacks may have the lock
def _renew_lock() -> None:
    global lock, assigned
    lock = threading.RLock()
    assigned = threading.Condition(lock)


class TraceState(threading.local):
    """The `Trace` that a thread builds, or None; its ``reads`` are lives of arrays."""

    trace: Any = None


trace_state = TraceState()
if core is not None:
    core.set_trace_state(trace_state)


class Life:
    """The time that an array, or a part of it, keeps its buffers.

    Readers are caches of functions that were traced with the values; the first life of an array
    knows them.
    """

    __slots__ = ("readers",)

    def __init__(self) -> None:
        self.readers: WeakKeys[Any, None] | None = None

    def add_reader(self, reader: object) -> None:
        """Has `forget_reads` empty a cache, while that exists."""
        if self.readers is None:
            self.readers = WeakKeys()
        self.readers.keep(reader, None)


Lives = tuple[Life, ...]
# Process-wide: threads that trace look whether another has assigned meanwhile.
_ended = [0]


def note_read(array: Array) -> None:
    """Notes that the trace of this thread has values that the array has until an assignment."""
    trace = trace_state.trace
    if trace is not None:
        with lock:
            trace.reads.update(_lives_of(array)[:1])


count_ended: Callable[[], int] = partial(itemgetter(0), _ended)
"""Returns how often an assignment ended lives that readers may know; no Python frame."""


def forget_reads(lives: Lives) -> None:
    """Empties the caches of functions traced with the values of an array that had these lives.

    To be called without `lock`: programs end, which may wait for others.
    """
    if lives and lives[0].readers is not None:
        for reader in lives[0].readers.alive():
            reader.clear()


def _lives_of(array: Array) -> Lives:
    """Returns the lives of an array, in the order of its devices here; new ones if it had none."""
    lives: Lives | None = getattr(array, "_lives", None)
    if lives is None:
        devices = array._aval.sharding.addressable_devices
        lives = array._lives = tuple([Life() for _ in devices])
    return lives


def keep_sharer(array: Array, made: Array) -> None:
    """Registers two arrays, and all that share buffers with them, as sharers of each other."""
    sharers: list[weakref.ref[Array]] | None = getattr(array, "_sharers", None)
    if sharers is None:
        sharers = array._sharers = [weakref.ref(array)]
    count = len(sharers)
    if count & (count - 1) == 0:  # at each power of two: drop dead references
        alive = [sharer for sharer in sharers if sharer() is not None]
        if len(sharers) == count:  # a finaliser has added none
            sharers[:] = alive
    others = getattr(made, "_sharers", None)
    if others is sharers:
        return
    for reference in others or [weakref.ref(made)]:
        other = reference()
        if other is not None:
            other._sharers = sharers
            sharers.append(reference)


def tie_parts(whole: Array, parts: Sequence[Array]) -> None:
    """Has parts that were made of an array end with it; in the order of its devices here."""
    for part, life in zip(parts, _lives_of(whole), strict=True):
        part._lives = (life,)
        keep_sharer(whole, part)


def tie_copy(array: Array, made: Array) -> None:
    """Ties an array to another one of the same buffers: they end together."""
    made._lives = _lives_of(array)
    keep_sharer(array, made)


def ends_with(array: Array, other: Array) -> bool:
    """Whether two arrays are the same, or one was tied to the other by `tie_copy`."""
    lives = getattr(array, "_lives", None)
    return array is other or (lives is not None and lives is getattr(other, "_lives", None))


def leave_sharers(array: Array) -> Lives:
    """Removes an array from those that share its buffers; returns the lives that it had."""
    sharers = getattr(array, "_sharers", None)
    if sharers is not None:
        sharers[:] = [sharer for sharer in sharers if sharer() is not array]
        del array._sharers
    lives: Lives | None = getattr(array, "_lives", None)
    if lives is None:
        return ()
    _ended[0] += 1
    del array._lives
    return lives


def tie_whole(whole: Array, parts: Sequence[Array]) -> None:
    """Has an array that was made of parts end with each; in the order of its devices here."""
    for part in parts:
        keep_sharer(whole, part)
    whole._lives = tuple([_lives_of(part)[0] for part in parts])


def find_sharers(array: Array) -> tuple[Sequence[Array], bool]:
    """Returns those alive that end with an array, and whether one that stays has its buffers.

    The array itself may have lost its own already.
    """
    sharers = None if array.__weakref__ is None else getattr(array, "_sharers", None)
    if sharers is None:  # sharers are referred to weakly, which is cheaper to test
        return (), False
    lives = {*getattr(array, "_lives", ())}
    here = array._aval.sharding.device_set
    tied: list[Array] = []
    shared = False
    for other in _others(array, sharers):
        if other._shards is None:
            continue
        if lives and not lives.isdisjoint(getattr(other, "_lives", ())):
            tied.append(other)
        elif not shared:  # what shares with one part knows all, and has nothing of the others
            shared = not here.isdisjoint(other._aval.sharding.devices)
    return tied, shared


def keep_ended(array: Array, loss: object) -> None:
    """Makes arrays that were deleted with an array, for the same reason, stay deleted, too."""
    lives = {*getattr(array, "_lives", ())}
    for other in _others(array, getattr(array, "_sharers", ())):
        if other._extra is loss and not lives.isdisjoint(getattr(other, "_lives", ())):
            other._extra = loss.copy()


def _others(array: Array, sharers: Sequence[weakref.ref[Array]]) -> list[Array]:
    found = [sharer() for sharer in [*sharers]]
    return [other for other in found if other is not None and other is not array]
