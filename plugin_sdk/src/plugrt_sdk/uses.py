"""`Uses`: counts the uses of a backend's handle, which is released with the last."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from plugrt_sdk.compiled import Handle

# Process-wide: handles of all clients are counted by the same steps.
_lock = threading.RLock()
"""For the counts of all handles. Reentrant: the garbage collector may delete a buffer within it."""


class Uses:
    """A handle of a backend that must not be deleted while something works with it.

    Its buffer is one use; so is each launch that reads it and is not complete, each read, and each
    array that looks at its memory.
    """

    __slots__ = ("_count", "_handle", "_release")

    def __init__(self, handle: Handle, release: Callable[[Handle], None]) -> None:
        self._handle = handle
        self._release = release
        self._count = 1

    def begin(self) -> bool:
        """Adds a use; False if the handle is gone by now."""
        return begin_all((self,)) is None

    def claim(self) -> bool:
        """Takes the handle over if the buffer is its only use; `unclaim` gives it back."""
        with _lock:
            alone = self._count == 1
            if alone:
                self._count = 0
            return alone

    def unclaim(self) -> None:
        """Undoes `claim`; deletes the handle if the buffer was deleted meanwhile."""
        with _lock:
            self._count += 1
            last = not self._count
        if last:
            self._give_back()

    def end(self) -> None:
        """Ends a use; with the last one the handle is deleted."""
        end_all((self,))

    def _give_back(self) -> None:
        handle, self._handle = self._handle, None
        self._release(handle)


def begin_all(uses: Sequence[Uses]) -> Uses | None:
    """Adds a use to each, unless one of the handles is gone, which is returned."""
    with _lock:
        for one in uses:
            if not one._count:
                return one
        for one in uses:
            one._count += 1
    return None


def end_all(uses: Sequence[Uses]) -> None:
    """Ends a use of each; what is used no more is deleted."""
    last = []
    with _lock:
        for one in uses:
            one._count -= 1
            if not one._count:
                last.append(one)
    for one in last:
        one._give_back()
