"""`repr` and `str` of arrays; large arrays are summarised."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from plugrt.execution.shardings.sharding_base import Sharding
from plugrt.native.known_dtypes import is_key_dtype

_THRESHOLD = 1000
_EDGE = 3


class Printable(Protocol):
    """The attributes of an `Array` that printing needs."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def size(self) -> int: ...
    @property
    def sharding(self) -> Sharding: ...
    @property
    def is_fully_addressable(self) -> bool: ...
    def is_deleted(self) -> bool: ...
    def _words(self) -> object: ...
    def _printed(self) -> npt.NDArray[np.generic]: ...


def array_repr(array: Printable) -> str:
    """Returns ``Array([1. 2.], dtype=float32)``, shortened if there are many elements."""
    dtype = f"dtype={array.dtype.name}"
    if array.is_deleted():
        return f"<deleted Array of shape {array.shape}, {dtype}>"
    if not array.is_fully_addressable or array.sharding.is_summed(len(array.shape)):
        return f"<Array of shape {array.shape}, {dtype}, on {array.sharding!r}>"
    if is_key_dtype(array.dtype):
        return f"Array({array.shape}, {dtype}) overlaying:\n{array._words()}"
    printed = array._printed()
    body = np.array2string(
        printed, separator=", ", prefix="Array(", threshold=_THRESHOLD, edgeitems=_EDGE
    )
    shape = f", shape={array.shape}" if 0 in array.shape or array.size > _THRESHOLD else ""
    if printed.ndim > len(array.shape):
        shape = f", of {len(printed)} replicas"
    return f"Array({body}{shape}, {dtype})"


def array_str(array: Printable) -> str:
    """Returns the contents as NumPy prints them."""
    is_whole = array.is_fully_addressable and not array.sharding.is_summed(len(array.shape))
    if array.is_deleted() or not is_whole or is_key_dtype(array.dtype):
        return array_repr(array)
    with np.printoptions(threshold=_THRESHOLD, edgeitems=_EDGE):
        return str(array._printed())
