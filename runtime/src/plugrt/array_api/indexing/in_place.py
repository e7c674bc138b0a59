"""`read_in_place`: ``x[key]`` where that is what one device holds."""

from __future__ import annotations

from typing import Any

from plugrt.array_api.indexing.key import normalize_index
from plugrt.execution.arrays.array import Array
from plugrt.execution.transfers.sharded_transfer import slice_in_place


def read_in_place(x: Array, key: Any) -> Array | None:
    """Returns ``x[key]`` where that is one device's buffer, and nothing has to run; else None.

    As in JAX, such keys are ``x[i]`` of an array whose first dimension is the mapped axis, with
    slices of everything or an ellipsis beside it, and ``x[:, i]`` and the like of another one.
    """
    place = _find_place(key, x.ndim)
    if place is None:
        return None
    dimension, position = place
    return slice_in_place(x, dimension, normalize_index(position, x.shape, dimension))


def _find_place(key: Any, ndim: int) -> tuple[int, int] | None:
    """Returns dimension and position of a key that picks one place along one dimension."""
    if type(key) is int:
        return (0, key) if ndim else None
    if type(key) is not tuple:
        return None
    numbers = [i for i, item in enumerate(key) if type(item) is int]
    dots = [i for i, item in enumerate(key) if item is Ellipsis]
    whole = sum(map(_is_whole, key))
    if len(numbers) != 1 or len(dots) > 1 or len(numbers) + len(dots) + whole != len(key):
        return None
    if len(key) - len(dots) > ndim:
        return None
    [i] = numbers
    return (ndim - len(key) + i if dots and dots[0] < i else i), key[i]


def _is_whole(item: Any) -> bool:
    """Whether it is ``:``."""
    return type(item) is slice and item.start is None and item.stop is None and item.step is None
