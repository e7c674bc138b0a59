"""`Key`: a parsed index expression, split into a static part and operands.

The static part (new axes, lengths and steps of slices, the order of items) becomes part of a cache
key; the dynamic part (integers, starts of slices, integer arrays) becomes operands, so that
``x[i]`` and ``x[i : i + 5]`` in a loop compile once.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from plugrt.array_api.indexing.items import (
    TAKE_AXIS,
    Flag,
    Gap,
    Indices,
    Item,
    KnownPosition,
    New,
    Scalar,
    Shape,
    Slice,
    Spec,
    Unravelled,
    Window,
    has_operand,
)
from plugrt.errors import DataDependentShape, InvalidIndex, TracingError
from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.array_types import is_registered, represent
from plugrt.tracing.promotion import dtype_kind
from plugrt.tracing.tracer import Tracer


@dataclass(frozen=True, slots=True)
class Key:
    """The static ``spec`` of a key and its dynamic ``operands``, in order."""

    spec: Spec
    operands: tuple[Any, ...]


def parse(shape: Shape, key: object, *, embed: bool, bounded: bool = True) -> Key:
    """Returns a key for an array of ``shape``, by NumPy's rules.

    With ``embed``, integers and the starts of slices become part of the spec; else they become
    operands, so that all of them use one program. Raises `InvalidIndex` for integers out of bounds
    (if not ``bounded`` they are treated as in arrays), too many indices and wrong types;
    `DataDependentShape` for a traced boolean array.
    """
    elements = [_normalize_element(k) for k in (key if isinstance(key, tuple) else (key,))]
    elements = _expand_ellipsis(shape, elements, key)
    items: list[Item] = []
    operands: list[Any] = []
    axis = 0
    for k in elements:
        if isinstance(k, int) and not bounded and not -shape[axis] <= k < shape[axis]:
            k = np.asarray(max(-shape[axis] - 1, min(k, shape[axis])), np.int32)
        if k is None:
            items.append(New())
        elif k is Ellipsis:
            items.append(Gap())
        elif isinstance(k, slice):
            items.append(_parse_slice(k, shape[axis]))
            axis += 1
        elif isinstance(k, int):
            position = normalize_index(k, shape, axis)
            items.append(KnownPosition(position) if embed else Scalar(safe=True))
            operands.extend([] if embed else [position])
            axis += 1
        elif dtype_kind(k.dtype) == "b":
            axis += _add_mask(k, shape, axis, items, operands)
        else:
            items.append(Indices() if k.shape else Scalar(safe=False))
            operands.append(k)
            axis += 1
    found = Key(tuple(items), tuple(operands))
    return found if embed else _make_starts_dynamic(shape, found)


def _make_starts_dynamic(shape: Shape, key: Key) -> Key:
    """Returns the key with operands for starts of slices, except of slices of whole axes."""
    pending = iter(key.operands)
    spec: list[Item] = []
    operands: list[object] = []
    sizes = iter(shape)
    for item in key.spec:
        size = next(sizes) if isinstance(item, TAKE_AXIS) else 0
        if isinstance(item, Slice) and item.count:
            window = Window(item.count, item.step if item.count > 1 else 1)
            if window.extent < size:
                spec.append(window)
                operands.append(min(item.start, item.start + (item.count - 1) * item.step))
                continue
        spec.append(item)
        if has_operand(item):
            operands.append(next(pending))
    return Key(tuple(spec), tuple(operands))


def _normalize_element(k: Any) -> Any:
    """Returns an element of a key as None, an ellipsis, a slice, an int, or an array."""
    if k is None or k is Ellipsis or isinstance(k, slice):
        return k
    if isinstance(k, list | tuple):  # a tuple within the key
        k = _convert_list(k)
    if isinstance(k, bool | np.bool_):
        k = np.asarray(k)
    elif not isinstance(k, np.ndarray) and type(k) not in (Array, Tracer):
        try:
            return operator.index(k)
        except TypeError as error:
            if not is_registered(k) and not hasattr(type(k), "__array__"):
                raise InvalidIndex(
                    f"{k!r:.60} of type {type(k).__qualname__} is not an index; an index is an "
                    "integer, a slice, an ellipsis, None, or an array of integers or booleans"
                ) from error
        found = represent(k, "an index") if is_registered(k) else k
        k = found if type(found) in (Array, Tracer) else np.asarray(found)
    if dtype_kind(k.dtype) not in "biu":
        raise InvalidIndex(
            f"an array of dtype {k.dtype.name} is not an index; arrays in an index hold integers "
            "or "
            "booleans (astype converts)"
        )
    return k


def _count_axes(k: Any) -> int:
    """Returns the number of axes that an element uses."""
    if k is None or k is Ellipsis:
        return 0
    if isinstance(k, slice | int) or dtype_kind(k.dtype) != "b":
        return 1
    return int(k.ndim)


def _expand_ellipsis(shape: Shape, elements: list[object], key: object) -> list[Any]:
    """Returns the elements, one for each axis: whole slices replace ``...``."""
    where = [i for i, k in enumerate(elements) if k is Ellipsis]
    if len(where) > 1:
        raise InvalidIndex(f"the index {key!r} has more than one ellipsis (...)")
    missing = len(shape) - sum(map(_count_axes, elements))
    if missing < 0:
        raise InvalidIndex(
            f"the index takes {len(shape) - missing} axes, and the array of shape {shape} has "
            f"{len(shape)}"
        )
    filling: list[object] = [slice(None)] * missing
    if not where:
        return [*elements, *filling]
    i = where[0]
    return [*elements[:i], *(filling or [Ellipsis]), *elements[i + 1 :]]


def _parse_slice(k: slice, size: int) -> Slice:
    try:
        start, stop, step = k.indices(size)
    except TracingError as error:
        raise TracingError(
            f"a bound of the slice {k} is a traced array, and the shape of a result must be known "
            "when the program is made; take a part of known size with lax.dynamic_slice"
        ) from error
    except (TypeError, ValueError) as error:
        raise InvalidIndex(f"{k} is not an index: {error}") from error
    count = len(range(start, stop, step))
    return Slice(start, count, step) if count else Slice(0, 0, 1)


def normalize_index(k: int, shape: Shape, axis: int) -> int:
    """Returns an integer index counted from the front; `InvalidIndex` if it is out of bounds."""
    size = shape[axis]
    if not -size <= k < size:
        raise InvalidIndex(
            f"index {k} is out of bounds for axis {axis} of an array of shape {shape}"
        )
    return k % size


def _convert_list(k: list[object] | tuple[object, ...]) -> object:
    """Returns a list as an index array; `InvalidIndex` for rows of different lengths."""
    try:
        return np.asarray(k) if k else np.zeros(0, np.int32)
    except ValueError as error:
        raise InvalidIndex(f"the list {k!r:.60} is not an index: {error}") from error


def _add_mask(mask: Any, shape: Shape, axis: int, items: list[Item], operands: list[object]) -> int:
    """Adds a boolean array as the positions of its true elements; returns its number of axes."""
    if type(mask) is Tracer:
        raise DataDependentShape(
            f"x[mask] with the traced boolean array {mask!r}: how many elements it picks, and so "
            "the result's shape, depends on the data. Use array_api.where(mask, x, other), or "
            "x.at[mask].set(value) to update; or leave this part outside of the traced function"
        )
    if not mask.ndim:
        items.append(Flag(int(bool(mask))))
        return 0
    covered = shape[axis : axis + mask.ndim]
    if mask.shape != covered:
        raise InvalidIndex(
            f"a boolean index of shape {mask.shape} meets axes of shape {covered} (from axis "
            f"{axis} of an array of shape {shape}); they must be equal"
        )
    positions = np.flatnonzero(np.asarray(mask))
    narrow = mask.size <= np.iinfo(np.int32).max
    operands.append(positions.astype(np.int32 if narrow else np.int64))
    items.extend(Unravelled(mask.shape, i) for i in range(mask.ndim))
    return int(mask.ndim)
