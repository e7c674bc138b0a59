"""What an array prints as: its contents when they are few, never a flood."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from plugrt.execution.array import Array

_THRESHOLD = 1000
_EDGE = 3


def array_repr(array: Array) -> str:
    """Returns ``Array([1. 2.], dtype=float32)``, shortened where the contents are many."""
    kind = f"dtype={array.dtype.name}"
    if array.is_deleted():
        return f"<deleted Array of shape {array.shape}, {kind}>"
    if not array.is_fully_addressable:
        return f"<Array of shape {array.shape}, {kind}, on {array.sharding!r}>"
    body = np.array2string(
        np.asarray(array), separator=", ", prefix="Array(", threshold=_THRESHOLD, edgeitems=_EDGE
    )
    shape = f", shape={array.shape}" if 0 in array.shape or array.size > _THRESHOLD else ""
    return f"Array({body}{shape}, {kind})"


def array_str(array: Array) -> str:
    """Returns the contents as NumPy prints them."""
    if array.is_deleted() or not array.is_fully_addressable:
        return array_repr(array)
    with np.printoptions(threshold=_THRESHOLD, edgeitems=_EDGE):
        return str(np.asarray(array))
