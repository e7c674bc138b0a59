"""`Held`, `Uses`: a backend's handle, released once, and the number of its uses.

Functions that release a handle or end a use may be called again after an interrupt, as finalisers
are (`plugrt.native.finalizers`): each step that must happen once is an item of an iterator, and
only a function in C advances that.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from plugrt_sdk.compiled import Handle

if TYPE_CHECKING:
    from plugrt_sdk.session import Session

# Process-wide: handles of all clients are counted by the same steps.
_lock = threading.RLock()
"""To begin uses of several handles at once. Reentrant: a signal handler may come within it."""


class Held:
    """A handle of a backend, until `end` deletes it or `forget` leaves it to a launch."""

    __slots__ = ("_counted", "_handles", "_session")

    def __init__(self, handle: Handle, session: Session) -> None:
        self._handles = iter(() if handle is None else (handle,))  # None: a token
        self._session = session
        self._counted = session.count_buffer()

    def end(self) -> None:
        """Has the backend delete the handle; a second call does the steps that are left."""
        try:
            deque(map(self._session.backend.delete, self._handles), 0)  # all: drops the reference
        finally:
            next(self._counted, None)
            self._session.close_if_idle()

    def forget(self) -> None:
        """Leaves the handle to a launch that has consumed it."""
        deque(self._handles, 0)
        self.end()


class Uses:
    """A handle of a backend that must not be deleted while it is in use.

    Its buffer is one use; so are each unfinished launch that reads it, each read, and each array
    over its memory.
    """

    __slots__ = ("_held", "_is_claimed", "_uses")

    def __init__(self, held: Held) -> None:
        self._held = held
        self._uses = [None]
        self._is_claimed = False

    def begin(self) -> bool:
        """Adds a use; False if the handle is gone by now."""
        return begin_all((self,)) is None

    def claim(self) -> bool:
        """Takes the handle over if the buffer is its only use; `unclaim` gives it back."""
        with _lock:
            self._is_claimed = True  # set first, as `end` acquires no lock
            if len(self._uses) == 1:
                return True
        self.unclaim()
        return False

    def unclaim(self) -> None:
        """Undoes `claim`; deletes the handle if the buffer was deleted meanwhile."""
        self._is_claimed = False
        self._settle()

    def end(self) -> None:
        """Ends a use; with the last one the handle is deleted."""
        self._uses.pop()
        self._settle()

    def ender(self) -> Callable[[], None]:
        """Returns a function that ends one use at its first call."""
        ending = map(list.pop, (self._uses,))

        def end() -> None:
            next(ending, None)
            self._settle()

        return end

    def _settle(self) -> None:
        if not self._uses and not self._is_claimed:
            self._held.end()


def begin_all(uses: Sequence[Uses]) -> Uses | None:
    """Adds a use to each, unless one of the handles is gone, which is returned."""
    with _lock:
        for one in uses:
            if one._is_claimed or not one._uses:
                return one
        for one in uses:
            one._uses.append(None)
    return None


def end_all(uses: Sequence[Uses]) -> None:
    """Ends one use of each object and deletes the objects that have no uses left."""
    for one in uses:
        one.end()
