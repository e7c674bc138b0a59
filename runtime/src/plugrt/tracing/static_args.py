"""Static values as parts of cache keys."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any


def static_key(value: Any) -> Hashable:
    """Returns a key that is equal only for static values that a function cannot tell apart.

    Python holds 1, 1.0 and True for equal, and 0.0 and -0.0, also within tuples; and a NaN for
    different from itself.
    """
    cls = type(value)
    if cls in _PLAIN:
        return (cls, value)
    if isinstance(value, tuple):
        return (cls, *map(static_key, value))
    if isinstance(value, _FLOATS):
        return (cls, repr(value))
    return (cls, value)


_PLAIN = frozenset((int, bool, str, bytes, type(None)))
_FLOATS = (float, complex)  # a union is made anew, and slower to look in
