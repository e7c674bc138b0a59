"""Static values as parts of cache keys."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any


def static_key(value: Any) -> Hashable:
    """Returns a key that is equal only for static values that a function cannot tell apart.

    Python holds 1, 1.0 and True for equal, and 0.0 and -0.0, also within tuples; and a NaN for
    different from itself.
    """
    if isinstance(value, tuple):
        return (type(value), *map(static_key, value))
    if isinstance(value, float | complex):
        return (type(value), repr(value))
    return (type(value), value)
