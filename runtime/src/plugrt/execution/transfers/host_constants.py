"""`HostConstant`: a host array that a traced function closed over."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.execution.arrays.array import Array
from plugrt.execution.shardings.sharding_base import Sharding
from plugrt.execution.transfers.sharded_transfer import put_sharded


class HostConstant:
    """The contents of a host array when a function was traced, put once wherever they are needed.

    A copy, since programs are loaded later, and again for other devices, when the array may hold
    something else. Programs share it that have it of one trace: those of the function, and those of
    functions that call it.
    """

    __slots__ = ("_placed", "_source", "data")

    def __init__(self, source: Any, host: npt.NDArray[Any]) -> None:
        """``host`` is ``source`` in a dtype that devices have."""
        self.data = host.copy()
        # NumPy's scalars cannot be referred to weakly.
        self._source = weakref.ref(source) if isinstance(source, np.ndarray) else None
        self._placed: weakref.WeakValueDictionary[Sharding, Array] = weakref.WeakValueDictionary()

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions of the array."""
        return self.data.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of an element."""
        return self.data.dtype

    @property
    def source(self) -> npt.NDArray[Any] | None:
        """The array that it was copied from, while that lives."""
        return None if self._source is None else self._source()

    def equals(self, host: npt.NDArray[Any]) -> bool:
        """Whether ``host`` holds the same, bit by bit."""
        if (host.shape, host.dtype) != (self.shape, self.dtype):
            return False
        return np.array_equal(_bytes(host), _bytes(self.data))

    def place(self, sharding: Sharding) -> Array:
        """Returns it on the devices of ``sharding``: the same array while a program holds that."""
        found = self._placed.get(sharding)
        if found is None:
            found = self._placed.setdefault(sharding, put_sharded(self.data, sharding))
        return found


def _bytes(host: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    return np.ascontiguousarray(host).reshape(-1).view(np.uint8)
