"""`Deletable`: deleting an array, alone or beside others that hold the same buffers."""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING, Any

from plugrt.argument_errors import with_checked_methods
from plugrt.execution.array_contents import Contents
from plugrt.execution.deletion import Deletion

sharers_lock = threading.RLock()
"""Held while buffers become another array's too, and to take them: who looks finds who has them.

A finaliser may do the same meanwhile. To be read here each time: a forked child has a new one.
"""


def _renew_lock() -> None:
    global sharers_lock
    sharers_lock = threading.RLock()


if hasattr(os, "register_at_fork"):  # a thread that the child lacks may have it
    os.register_at_fork(after_in_child=_renew_lock)


@with_checked_methods
class Deletable(Contents):
    """The methods of `Array` that give its memory back."""

    __slots__ = ()

    if TYPE_CHECKING:
        __weakref__: Any
        _sharers: list[weakref.ref[Any]]

    def delete(self) -> None:
        """Gives the memory back now, unless another array holds the same buffers.

        A second call does nothing; use afterwards raises.
        """
        with sharers_lock:
            held, self._shards = self._shards, None
            if held is None:
                if isinstance(self._extra, Deletion):  # a launch that fails gives nothing back then
                    self._extra = self._extra.copy()
                return
            self._extra = Deletion()
            shared = self._shares(held)
        if not shared:
            for shard in self._open_shards(held):
                shard.delete()

    def is_deleted(self) -> bool:
        """Whether the array was deleted or donated."""
        held = self._shards
        return held is None or any(shard.is_deleted() for shard in self._open_shards(held))

    def _shares(self, held: Any) -> bool:
        """Whether another array that is alive holds these buffers, which this one has or had."""
        sharers = None if self.__weakref__ is None else getattr(self, "_sharers", None)
        if sharers is None:  # those that share are referred to weakly, which is asked at less cost
            return False
        return any(
            other is not None and other is not self and other._shards is held
            for other in [sharer() for sharer in [*sharers]]
        )

    def _mark_lost(self, loss: Deletion) -> None:
        self._shards, self._extra = None, loss
