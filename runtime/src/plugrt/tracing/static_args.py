"""Static arguments in cache keys: what is equal, and what cannot be hashed."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from plugrt.errors import UnhashableStaticArgument


def static_key(value: object) -> Hashable:
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


class StaticValue:
    """A static value in a cache key, equal only to one of the same type (1, 1.0, True differ)."""

    __slots__ = ("key",)

    def __init__(self, value: object) -> None:
        self.key = static_key(value)

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StaticValue) and self.key == other.key


def freeze(value: Any, name: str, operation: object) -> Any:
    """Returns a static argument as something hashable: lists become tuples, dicts items.

    NumPy arrays (of sizes, axes, offsets) also become tuples.
    """
    if type(value) is np.ndarray:
        value = value.tolist()
    if type(value) in (list, tuple):
        return tuple(freeze(v, name, operation) for v in value)
    if type(value) is dict:
        return tuple((k, freeze(v, name, operation)) for k, v in sorted(value.items()))
    try:
        hash(value)
    except TypeError as error:
        raise UnhashableStaticArgument(
            f"argument {name!r} of {operation!r} must be known when the program is made, and "
            f"{type(value).__qualname__} cannot be hashed; pass Python numbers, strings, tuples"
        ) from error
    return value
