"""`clear_caches`: forgets all traced and compiled programs."""

from __future__ import annotations

from plugrt.base import bounded_cache
from plugrt.frames.argument_errors import with_argument_errors


@with_argument_errors
def clear_caches() -> None:
    """Empties every cache of traced and compiled programs; the next calls compile again.

    >>> plugrt.clear_caches()
    """
    bounded_cache.clear(interned=False)
