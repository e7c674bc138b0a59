"""`static_key`: cache keys of static arguments."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any


def static_key(value: Any) -> Hashable:
    """Returns a key that is equal only for static values that a function cannot tell apart.

    In Python 1 == 1.0 == True and 0.0 == -0.0, also within tuples, and NaN != NaN.
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
_FLOATS = (float, complex)  # a tuple: isinstance with a union is slower
