"""What `clear_caches` clears: every cache of compiled programs announces itself here."""

from __future__ import annotations

import weakref
from typing import Protocol

from plugrt.plugins import backends


class Cache(Protocol):
    """Something that can be emptied at any time without changing results."""

    def clear(self) -> None:
        """Empties it."""


_caches: weakref.WeakSet[Cache] = weakref.WeakSet()


def remember(cache: Cache) -> None:
    """Adds a cache to those that `clear_caches` empties, for as long as it lives."""
    _caches.add(cache)


def clear_caches() -> None:
    """Empties every cache of traced and compiled programs; the next calls compile again."""
    for cache in list(_caches):
        cache.clear()


backends.on_clear(clear_caches)
