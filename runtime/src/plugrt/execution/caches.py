"""`BoundedCache`: the cache class of this package; `clear_caches` empties all instances."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from plugrt.argument_errors import with_argument_errors
from plugrt.plugins import backends

K = TypeVar("K")
V = TypeVar("V")


class BoundedCache(dict[K, V]):
    """A dict of at most ``most`` values; the oldest is evicted when it is full.

    Looking up is a plain ``dict.get``. It can be emptied at any time: values are made again.
    """

    __slots__ = ("__weakref__", "_making", "_most")
    __hash__ = object.__hash__  # type: ignore[assignment]

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most
        self._making: dict[K, threading.RLock] = {}
        _caches.add(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def keep(self, key: K, value: V) -> None:
        """Adds a value."""
        while len(self) >= self._most:
            try:
                self.pop(next(iter(self)), None)
            except (RuntimeError, StopIteration):  # another thread changed or emptied it meanwhile
                continue
        self[key] = value

    def get_or_make(self, key: K, make: Callable[[], V]) -> V:
        """Returns the value of ``key``; of threads that miss it together, one makes it."""
        if (value := self.get(key)) is not None:
            return value
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


_caches: weakref.WeakSet[BoundedCache[Any, Any]] = weakref.WeakSet()


@with_argument_errors
def clear_caches() -> None:
    """Empties every cache of traced and compiled programs; the next calls compile again."""
    for cache in list(_caches):
        cache.clear()


backends.on_clear(clear_caches)
