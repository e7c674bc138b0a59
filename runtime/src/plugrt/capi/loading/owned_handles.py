"""`own`: handles that are freed exactly when the last reference to them is dropped."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from sys import getrefcount
from typing import TYPE_CHECKING, Any

from plugrt.capi.abi._abi import ffi
from plugrt.lifetime.forks import call_in_child, keep_forever
from plugrt.native.finalizers import finish
from plugrt.native.native_core import core

if TYPE_CHECKING:
    from plugrt.capi.abi._abi import CData


class _Watch(weakref.ref[Any]):
    """A weak reference to one handle, whose callback frees it."""

    __slots__ = ("free", "group", "keep", "lends", "raw")

    free: object
    group: object
    keep: object
    lends: int | None
    raw: int


# Process-wide: weak references must live until their callbacks run, at any time.
watches: dict[int, _Watch] = {}
"""The watches of all live handles, by their own ids."""


def _end(watch: _Watch, _watches: dict[int, _Watch] = watches, _finish: Any = finish) -> None:
    # Default arguments: at exit the interpreter may have cleared this module's globals.
    del _watches[id(watch)]
    if watch.free is not None and not watch.group:
        _finish(watch.free, watch.keep)


_ended: Any = _end if core is None else core.Watching(watches)


def own(
    pointer: CData,
    free: Callable[[Any], object],
    group: Sequence[bool] = (),
    lends: CData | None = None,
    keep: object = None,
    is_repeatable: bool = False,
) -> CData:
    """Returns ``pointer`` as an object that calls ``free(pointer)`` once when it is freed.

    ``__del__`` and ``ffi.gc`` are not enough. The garbage collector runs the finalisers of all
    members of a cycle before it breaks the cycle; the members' own finalisers, a generator's
    ``finally`` among them, may use other members after that, or keep them alive (PEP 442). The
    collector does not track a plain cffi pointer: a weak reference to it is cleared with the last
    reference to it, and by nothing else.

    ``free`` is a `make_freer` of the core, or a function in Python, called as
    `plugrt.native.finalizers` says; one that ``is_repeatable`` is called again where a signal
    handler raised in it. It must not raise: nothing could catch it. Objects that it refers to, and
    ``keep``, live as long as the handle.

    `free_group` frees the handles of a ``group`` early; once that is not empty nothing is freed.
    ``lends`` is the pointer of another handle, which is not freed early: outsiders read its memory
    while this one lives.
    """
    handle = ffi.cast(ffi.typeof(pointer), pointer)
    watch = _Watch(handle, _ended)
    watch.raw = address_of(pointer)
    if core is not None and type(free) is core.Freer:
        watch.free = free
    else:
        once = partial(next, map(free, (pointer,)), None)
        watch.free = partial(free, pointer) if is_repeatable else once
    watch.group = group
    watch.keep = keep
    watch.lends = None if lends is None else address_of(lends)
    watches[id(watch)] = watch
    return handle


def address_of(pointer: CData) -> int:
    """Returns the address in a pointer."""
    return int(ffi.cast("uintptr_t", pointer))


def free_group(group: object) -> None:
    """Frees the handles of ``group`` now, the newest first; not those whose memory is lent.

    Whatever still refers to them must not use them any more.
    """
    # The handles, too: one whose last reference another thread drops meanwhile is freed there.
    found = [(watch, watch()) for watch in list(watches.values())]
    lent = {watch.lends for watch, _ in found if watch.lends is not None}
    for watch, handle in reversed(found):
        if watch.group is group and handle is not None and watch.raw not in lent:
            free, watch.free = watch.free, None
            kept.append(free)
            if core is not None and type(free) is core.Freer:
                free(watch.raw)
            elif free is not None:
                free()


def stop_freeing() -> None:
    """Stops freeing existing handles, and never frees the objects they keep alive.

    For interpreter exit, after which libraries may still use memory that was passed to them.
    """
    keep_forever(watches)
    for watch in list(watches.values()):
        kept.append((watch.free, watch.keep))
        watch.free = None
    keep_forever(kept)


# Process-wide: kept until the process ends.
kept: list[object] = []
"""The ``free`` functions at interpreter exit, kept alive with the objects to which they refer."""


# A forked process has the handles, but not the library's threads.
call_in_child(watches.clear)


class _RefcountProbe:
    """Measures `ALONE` with the same expression as the finaliser of buffers."""

    def __del__(self, _getrefcount: Callable[[object], int] = getrefcount) -> None:
        _counts.append(_getrefcount(self))


# Process-wide: the finaliser below has no other place to store its result.
_counts: list[int] = []
_RefcountProbe()
ALONE = _counts[0]
"""``getrefcount(self)`` in a finaliser called for the last reference. It is greater if the garbage
collector calls the finaliser for a member of a cycle, because other members refer to it."""
