"""`WeakKeys`: a dict with weak keys, whose items are removed without Python code."""

from __future__ import annotations

from typing import TypeVar
from weakref import ref

K = TypeVar("K")
V = TypeVar("V")


class WeakKeys(dict[ref[K], V]):
    """A dict of weak references to its keys, whose items are removed when the keys are freed.

    Python ignores exceptions in the callback of a weak reference, also an exception of a signal
    handler. The callbacks of `weakref.WeakKeyDictionary` and `weakref.WeakSet` are Python
    functions. C functions run no handlers. Use it for objects that are freed during calls.
    """

    __slots__ = ("__weakref__",)

    def find(self, key: K) -> V | None:
        """Returns the value of ``key``, or None; raises `TypeError` if it cannot be referenced."""
        return self.get(ref(key))

    def keep(self, key: K, value: V) -> V:
        """Adds a value and returns it; returns the value of another thread that was first."""
        return self.setdefault(ref(key, self.pop), value)

    def alive(self) -> list[K]:
        """Returns the keys that still exist."""
        return [key for reference in list(self) if (key := reference()) is not None]
