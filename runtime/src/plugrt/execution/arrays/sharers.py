"""Arrays that share buffers: which are deleted together, and which independently.

Each array has a list of weak references to the arrays that may share its buffers. If a part of it
is an array as well, it also has `Life` objects, one for each part. Arrays with a common `Life` are
deleted together, as in JAX: an array and its part, or an array made of that part. Others are
deleted independently: arguments that a program returns, arrays that were put or sliced. Callers
hold `lock`. Assigning to an array gives it other buffers: it no longer shares them, it gets new
`Life` objects, and the traces that read it are dropped.
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
"""Stands for `Array`, whose module imports this one."""

# Process-wide: arrays of all clients share buffers by the same steps.
lock = threading.RLock()
"""Held while an array gets, loses or shares buffers, so that the users of buffers are known.

Reentrant, since a finaliser may do the same meanwhile. Always read it as an attribute of this
module: a forked child replaces it.
"""
# Process-wide: it uses the lock.
assigned = threading.Condition(lock)
"""Notified when an assignment in place has ended."""


@call_in_child  # a thread of the parent may hold the lock
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
    """The time during which an array, or a part of it, keeps its buffers.

    Its readers are the caches of functions that were traced with the values; only the first `Life`
    of an array has them.
    """

    __slots__ = ("readers",)

    def __init__(self) -> None:
        self.readers: WeakKeys[Any, None] | None = None

    def add_reader(self, reader: object) -> None:
        """Registers a cache, weakly, for `forget_reads` to empty."""
        if self.readers is None:
            self.readers = WeakKeys()
        self.readers.keep(reader, None)


Lives = tuple[Life, ...]
# Process-wide: a tracing thread checks whether another thread has assigned meanwhile.
_ended = [0]


def note_read(array: Array) -> None:
    """Records that this thread's trace, if any, contains the array's present values."""
    trace = trace_state.trace
    if trace is not None:
        with lock:
            trace.reads.update(_lives_of(array)[:1])


count_ended: Callable[[], int] = partial(itemgetter(0), _ended)
"""Returns how often an assignment ended `Life` objects; without a Python frame."""


def forget_reads(lives: Lives) -> None:
    """Empties the caches of functions traced with the values of an array that had these lives.

    Call it without `lock`: it frees programs, which may wait for other threads.
    """
    if lives and lives[0].readers is not None:
        for reader in lives[0].readers.alive():
            reader.clear()


def _lives_of(array: Array) -> Lives:
    """Returns an array's `Life` objects, made if needed, in the order of addressable devices."""
    lives: Lives | None = getattr(array, "_lives", None)
    if lives is None:
        devices = array._aval.sharding.addressable_devices
        lives = array._lives = tuple([Life() for _ in devices])
    return lives


def keep_sharer(array: Array, made: Array) -> None:
    """Registers two arrays, and all arrays that share their buffers, as sharers of each other."""
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
    """Ties parts to the array they were made of, in the order of its addressable devices."""
    for part, life in zip(parts, _lives_of(whole), strict=True):
        part._lives = (life,)
        keep_sharer(whole, part)


def tie_copy(array: Array, made: Array) -> None:
    """Ties an array to another one of the same buffers: deleting one deletes both."""
    made._lives = _lives_of(array)
    keep_sharer(array, made)


def ends_with(array: Array, other: Array) -> bool:
    """Whether two arrays are the same, or one was tied to the other by `tie_copy`."""
    lives = getattr(array, "_lives", None)
    return array is other or (lives is not None and lives is getattr(other, "_lives", None))


def leave_sharers(array: Array) -> Lives:
    """Removes an array from its sharers; returns the `Life` objects that it had."""
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
    """Ties an array to the parts it was made of, in the order of its addressable devices."""
    for part in parts:
        keep_sharer(whole, part)
    whole._lives = tuple([_lives_of(part)[0] for part in parts])


def find_sharers(array: Array) -> tuple[Sequence[Array], bool]:
    """Returns the arrays tied to an array, and whether an array that is not tied has its buffers.

    The array itself may have no buffers any more.
    """
    sharers = None if array.__weakref__ is None else getattr(array, "_sharers", None)
    if sharers is None:  # without weak references it has no sharers; that is faster to test
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
        elif not shared:  # sharers of one part are in the list, but have no buffers of other parts
            shared = not here.isdisjoint(other._aval.sharding.devices)
    return tied, shared


def keep_ended(array: Array, loss: object) -> None:
    """Gives arrays that were deleted with ``array`` a `Deletion` that a failed launch keeps."""
    lives = {*getattr(array, "_lives", ())}
    for other in _others(array, getattr(array, "_sharers", ())):
        if other._extra is loss and not lives.isdisjoint(getattr(other, "_lives", ())):
            other._extra = loss.copy()


def _others(array: Array, sharers: Sequence[weakref.ref[Array]]) -> list[Array]:
    found = [sharer() for sharer in [*sharers]]
    return [other for other in found if other is not None and other is not array]
