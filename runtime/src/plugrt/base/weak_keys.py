"""`WeakKeys`: values by objects that end without Python code."""

from __future__ import annotations

from typing import TypeVar
from weakref import ref

K = TypeVar("K")
V = TypeVar("V")


class WeakKeys(dict[ref[K], V]):
    """A dict of weak references to its keys, whose items go when these end.

    Python drops what a signal handler raises in the callback of a weak reference. Those of
    `weakref.WeakKeyDictionary` and `weakref.WeakSet` are written in Python. Here they are functions
    in C, and no handler runs in these. Use it for objects that end during calls.
    """

    __slots__ = ("__weakref__",)

    def find(self, key: K) -> V | None:
        """Returns the value of ``key``, or None; raises `TypeError` if it cannot be referenced."""
        return self.get(ref(key))

    def keep(self, key: K, value: V) -> V:
        """Adds a value and returns it; of two that threads add at once, both get the first."""
        return self.setdefault(ref(key, self.pop), value)

    def alive(self) -> list[K]:
        """Returns the keys that have not ended."""
        return [key for reference in list(self) if (key := reference()) is not None]
