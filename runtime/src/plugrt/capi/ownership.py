"""`own`: handles that are freed when nothing refers to them any more, and not before."""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Callable
from sys import getrefcount
from typing import Any

from plugrt.capi.abi._abi import ffi


class _Watch(weakref.ref[Any]):
    """Waits for the end of one handle."""

    __slots__ = ("free", "raw")

    free: Callable[[Any], None]
    raw: Any


watches: dict[int, _Watch] = {}
"""The watches of all handles that live, by their own ids."""


def _end(watch: _Watch, _watches: dict[int, _Watch] = watches) -> None:
    # The default argument is there when the interpreter has emptied this module at its end.
    del _watches[id(watch)]
    watch.free(watch.raw)


def own(pointer: Any, free: Callable[[Any], None]) -> Any:
    """Returns ``pointer`` as an object whose end calls ``free(pointer)``, once.

    ``__del__`` and ``ffi.gc`` will not do. The garbage collector runs the finalisers of all members
    of a cycle before it takes the cycle apart; the members' own finalisers, a generator's
    ``finally`` among them, may use the others after that, or keep them for good (PEP 442). A plain
    pointer of cffi's is no object that the collector looks at: a weak reference to it goes with
    the last reference to it, and with nothing else.

    ``free`` must not raise: nobody could catch it. What it refers to lives as long as the handle.
    """
    handle = ffi.cast(ffi.typeof(pointer), pointer)
    watch = _Watch(handle, _end)
    watch.free = free
    watch.raw = pointer
    watches[id(watch)] = watch
    return handle


def _do_nothing(raw: Any) -> None:
    """Frees nothing."""


def stop_freeing() -> None:
    """Frees nothing from now on of what there is, and keeps what was kept for it for good.

    For the end of the interpreter, after which libraries may still use memory that they were lent.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(watches))
    for watch in list(watches.values()):
        kept.append(watch.free)
        watch.free = _do_nothing
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))


kept: list[Any] = []
"""What freed handles when the interpreter ended."""


# A process that was forked has the handles, but not the threads of the library behind them.
os.register_at_fork(after_in_child=watches.clear)


class _RefcountProbe:
    """Measures `ALONE` with the very expression that the finaliser of buffers uses."""

    def __del__(self, _getrefcount: Callable[[Any], int] = getrefcount) -> None:
        _counts.append(_getrefcount(self))


_counts: list[int] = []
_RefcountProbe()
ALONE = _counts[0]
"""What ``getrefcount(self)`` gives in a finaliser that the last reference's end has called. It is
more in one that the garbage collector calls for a member of a cycle, which others refer to."""
