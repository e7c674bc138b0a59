"""`RunnerCache`: the runners of calls by their keys; `clear_caches` forgets all programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from plugrt.base import bounded_cache
from plugrt.base.bounded_cache import BoundedCache
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.native.native_core import core


@with_argument_errors
def clear_caches() -> None:
    """Empties every cache of traced and compiled programs; the next calls compile again.

    >>> plugrt.clear_caches()
    """
    bounded_cache.clear(interned=False)


RunnerCache = BoundedCache[object, Callable[[Sequence[object]], Any]]
if core is not None and not TYPE_CHECKING:

    class RunnerCache(BoundedCache):
        """Tells the core what it loses, which keeps the runner of each function's last call."""

        __slots__ = ()

        def pop(self, *args):
            found = super().pop(*args)
            core.forget_runners(self)
            return found

        def clear(self):
            super().clear()
            core.forget_runners(self)
