"""`BoundedCache`: a dict that evicts its oldest value when it is full; `clear` empties them all."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import ref

from plugrt.base.weak_keys import WeakKeys

K = TypeVar("K")
V = TypeVar("V")


class BoundedCache(dict[K, V]):
    """A dict of at most ``most`` values; the oldest is evicted when it is full.

    Looking up is a plain ``dict.get``. It can be emptied at any time: values are made again.
    ``plugrt.clear_caches`` does so, unless the values are ``interned``, that is, compared by
    identity with values that other objects hold; ``clear_backends`` empties these, too.
    """

    __slots__ = ("__weakref__", "_making", "_most", "interned")
    __hash__ = object.__hash__  # type: ignore[assignment]

    def __init__(self, most: int, *, interned: bool = False) -> None:
        super().__init__()
        self._most = most
        self._making: dict[K, threading.RLock] = {}
        self.interned = interned
        with _lock:  # as `WeakKeys.keep`, without its call: each trace makes two caches
            _caches.setdefault(ref(self, _caches.pop), None)

    def __eq__(self, other: object) -> bool:
        return self is other

    def keep(self, key: K, value: V) -> None:
        """Adds a value."""
        while len(self) >= self._most:
            try:
                self.pop(next(iter(self)), None)
            except (RuntimeError, StopIteration):  # another thread changed or emptied it
                continue
        self[key] = value

    def get_or_make(self, key: K, make: Callable[[], V]) -> V:
        """Returns the value of ``key``; if several threads miss it at once, one makes it."""
        if (value := self.get(key)) is not None:
            return value
        # Reentrant: a signal handler or a finaliser may request the same value meanwhile.
        lock = self._making.setdefault(key, threading.RLock())
        with lock:
            value = self.get(key)
            try:
                if value is None:
                    value = make()
                    self.keep(key, value)
            finally:  # waiters hold the lock object already; later calls find the value
                self._making.pop(key, None)
        return value


# Process-wide: `clear_caches` empties the caches of all modules, which live as long as the process.
_caches: WeakKeys[BoundedCache[Any, Any], None] = WeakKeys()
# Process-wide: guards the set of caches.
_lock = threading.RLock()
"""Reentrant: a garbage collection may call a user's finaliser, which makes a cache."""


def clear(*, interned: bool) -> None:
    """Empties every cache; caches of interned values only if ``interned`` is True."""
    with _lock:
        caches = [cache for cache in _caches.alive() if interned or not cache.interned]
    for cache in caches:
        cache.clear()
