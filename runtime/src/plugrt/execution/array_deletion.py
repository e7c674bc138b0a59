"""`Deletable`: deleting an array, alone or beside others that hold the same buffers."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from plugrt.argument_errors import with_checked_methods
from plugrt.execution.array_contents import Contents
from plugrt.execution.deletion import Deletion


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
        held, self._shards = self._shards, None
        if held is not None:
            self._extra = Deletion()
            if not self._shares(held):
                shards = self._open_shards(held)
                for shard in shards:
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
