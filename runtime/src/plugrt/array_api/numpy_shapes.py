"""NumPy's functions that join, choose, order and replace elements and that the standard lacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plugrt.array_api.array_conversion import asarray
from plugrt.array_api.data_types import astype, result_type
from plugrt.array_api.elementwise.float_properties import clip
from plugrt.array_api.indexing.functions import take, take_along_axis
from plugrt.array_api.manipulation import (
    broadcast_arrays,
    broadcast_to,
    concat,
    flip,
    moveaxis,
    ravel,
    reshape,
    stack,
    swapaxes,
)
from plugrt.array_api.numpy_options import Traced, counterpart, is_known
from plugrt.array_api.searching import nonzero, searchsorted, where
from plugrt.array_api.sets import require_concrete
from plugrt.array_api.sorting import argsort, sort
from plugrt.array_api.statistics import cumulative_sum
from plugrt.errors import ArgumentError, ArgumentTypeError, ShapeError
from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.host_data import python_scalar
from plugrt.lax.control_flow.scans import map as map_rows
from plugrt.tracing.argument_checks import normalize_axes, normalize_axis
from plugrt.tracing.promotion import default_int, inexact
from plugrt.tracing.trace import current_trace
from plugrt.tracing.tracer import Tracer


def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    """Returns ``arr`` with ``values`` appended along ``axis``; without an axis, flattens both."""
    return concat([asarray(arr), asarray(values)], axis=axis)


def _wrap_atleast(ndim: int) -> Callable[..., object]:
    def at_least(*arys: Any) -> object:
        found = []
        for x in map(asarray, arys):
            missing = max(ndim - x.ndim, 0)
            after = 1 if missing and ndim == 3 and x.ndim else 0
            found.append(reshape(x, (1,) * (missing - after) + x.shape + (1,) * after))
        return found[0] if len(found) == 1 else tuple(found)

    return at_least


def block(arrays: Any) -> Any:
    """Returns arrays in nested lists joined: the innermost lists along the last axis."""
    depth = _find_depth(arrays)
    return _join_block(arrays, depth, max(depth, _count_dimensions(arrays)))


def _find_depth(x: Any) -> int:
    depths = {_find_depth(part) + 1 for part in x} if isinstance(x, list) else {0}
    if len(depths) != 1:
        raise ArgumentError(f"numpy.block takes lists of one depth; found {sorted(depths)}")
    return depths.pop()


def _count_dimensions(x: Any) -> int:
    return max(map(_count_dimensions, x)) if isinstance(x, list) else int(np.ndim(x))


def _join_block(x: Any, depth: int, ndim: int) -> Any:
    if depth:
        return concat([_join_block(part, depth - 1, ndim) for part in x], axis=-depth)
    leaf = asarray(x)
    return reshape(leaf, (1,) * (ndim - leaf.ndim) + leaf.shape)


def _flatten(title: str, x: Any, axis: int | None) -> tuple[Any, int]:
    x = asarray(x)
    return (ravel(x), 0) if axis is None else (x, normalize_axis(title, axis, x.ndim))


def _read(title: str, name: str, x: Any) -> Any:
    """Returns a value that determines a shape as a NumPy array; slices unchanged."""
    if isinstance(x, slice):
        return x
    if isinstance(x, Array | Tracer):
        x = require_concrete(title, x, "xp.where(condition, x, y) keeps the shape", name)
    host = np.asarray(x)
    if name == "obj" and host.size and host.dtype.kind not in "biu":
        raise ArgumentTypeError(
            f"{name} of numpy.{title} is integers, booleans or a slice; found {host.dtype.name}"
        )
    return host if host.size or (host.dtype.kind == "b" and host.ndim) else host.astype(int)


def _take(x: Any, places: Any, axis: int) -> Any:
    return take(x, asarray(places.astype(default_int())), axis=axis)


def delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    """Returns an array without the slices at ``obj``, which is read, along an axis."""
    x, axis = _flatten("delete", arr, axis)
    return _take(x, np.delete(np.arange(x.shape[axis]), _read("delete", "obj", obj)), axis)


def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    """Returns an array with values inserted before the indices ``obj`` along an axis."""
    x, axis = _flatten("insert", arr, axis)
    new, n, places = asarray(values), x.shape[axis], _read("insert", "obj", obj)
    if isinstance(places, slice):
        places = np.arange(n)[places]
    elif places.dtype == np.bool_:
        places = np.flatnonzero(places)
    new = reshape(new, (1,) * (x.ndim - new.ndim) + new.shape)
    if places.ndim == 0:
        new = moveaxis(new, 0, axis)
    count = new.shape[axis] if places.size == 1 else places.size
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    new = broadcast_to(astype(new, x.dtype), shape)
    before = int(places.reshape(-1)[0]) if places.size == 1 else places
    order = np.insert(np.arange(n), before, np.arange(n, n + count))
    return _take(concat([x, new], axis=axis), order, axis)


def rot90(m: Any, k: int = 1, axes: Sequence[int] = (0, 1)) -> object:
    """Returns an array rotated by ``k`` times 90 degrees, from the first to the second axis."""
    x = asarray(m)
    first, second = normalize_axes("rot90", tuple(axes), x.ndim)
    turned = flip(x, axis={1: second, 2: (first, second), 3: first}.get(k % 4, ()))
    return swapaxes(turned, first, second) if k % 2 else turned


def _wrap_flip(title: str, axis: int) -> Callable[..., object]:
    def flipped(m: Any) -> object:
        return flip(asarray(m), axis=normalize_axis(title, axis, np.ndim(m)))

    return flipped


def apply_along_axis(func1d: Any, axis: int, arr: Any, *args: Any, **kwargs: Any) -> object:
    """Returns the results of a function for each vector along an axis.

    Each vector is an array; in a trace the function is traced once for all of them.
    """
    x = asarray(arr)
    axis = normalize_axis("apply_along_axis", axis, x.ndim)
    moved = moveaxis(x, axis, -1)
    if not moved.size:
        raise ShapeError(f"numpy.apply_along_axis got shape {x.shape}, which has no vectors")
    rows = reshape(moved, (-1, moved.shape[-1]))
    if current_trace() is None:
        found = stack([asarray(func1d(row, *args, **kwargs)) for row in rows])
    else:
        found = map_rows(lambda row: asarray(func1d(row, *args, **kwargs)), rows)
    whole = reshape(found, moved.shape[:-1] + found.shape[1:])
    made = range(found.ndim - 1)
    return moveaxis(whole, [x.ndim - 1 + i for i in made], [axis + i for i in made])


def apply_over_axes(func: Any, a: Any, axes: Any) -> object:
    """Applies a function of an array and an axis for one axis after another."""
    found = asarray(a)
    for axis in np.atleast_1d(axes).tolist():
        at = normalize_axis("apply_over_axes", axis, found.ndim)
        made = asarray(func(found, at))
        kept = (*found.shape[:at], 1, *found.shape[at + 1 :])
        found = reshape(made, kept) if made.ndim == found.ndim - 1 else made
    return found


def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> object:
    """Returns the results of functions, each where its condition is true; elsewhere 0.

    Each function is called with all of ``x``.
    """
    x = asarray(x)
    given = condlist if isinstance(condlist, list | tuple) else [condlist]
    if not isinstance(condlist, list | tuple) and np.ndim(condlist) > x.ndim:
        given = list(asarray(condlist))
    elif x.ndim and all(np.ndim(condition) == 0 for condition in given):
        given = [asarray(given)]
    masks = [broadcast_to(asarray(mask), x.shape) for mask in given]
    if len(funclist) - len(masks) not in (0, 1):
        raise ArgumentError(
            f"numpy.piecewise got {len(funclist)} functions for {len(masks)} conditions; it takes "
            "as many, or one more"
        )
    parts = [asarray(f(x, *args, **kw) if callable(f) else f) for f in funclist]
    found = parts.pop() if len(parts) > len(masks) else asarray(0)
    for mask, part in zip(masks, parts, strict=True):
        found = where(mask, part, found)
    return astype(broadcast_to(found, x.shape), x.dtype)


def choose(a: Any, choices: Any, mode: str = "raise") -> Any:
    """Returns the element ``choices[a[i]][i]`` at each position i, after broadcasting.

    ``mode`` is for numbers out of range: "raise", "wrap" (modulo the number of choices) or "clip".
    Within a trace "raise" does as "clip". As ``jax.numpy.choose``.
    """
    given = asarray(a)
    if given.dtype.kind not in "biu":
        raise ArgumentTypeError(f"numpy.choose takes integers; found {given.dtype.name}")
    options = list(choices) if isinstance(choices, list | tuple) else list(asarray(choices))
    last = len(options) - 1
    if mode not in ("raise", "wrap", "clip"):
        raise ArgumentError(f"mode of numpy.choose is {mode!r}; it takes 'raise', 'wrap', 'clip'")
    if mode == "raise" and is_known(given):
        host = np.asarray(given)
        if ((host < 0) | (host > last)).any():
            raise ArgumentError(f"a of numpy.choose has numbers beyond its {last + 1} choices")
    index, *parts = broadcast_arrays(given, *map(asarray, options))
    index = astype(index, default_int())
    index = index % (last + 1) if mode == "wrap" else clip(index, 0, last)
    return take_along_axis(stack(parts), index[None], axis=0)[0]


def compress(condition: Any, a: Any, axis: int | None = None) -> Any:
    """Returns the slices along an axis where the vector ``condition``, which is read, is true."""
    chosen = _read("compress", "condition", condition)
    if chosen.ndim != 1:
        raise ShapeError(f"condition of numpy.compress has shape {chosen.shape}; it takes a vector")
    x, axis = _flatten("compress", a, axis)
    return _take(x, np.flatnonzero(chosen), axis)


@counterpart
def select(condlist: Sequence[Traced], choicelist: Sequence[Traced], default: Traced = 0) -> Any:
    """Returns the elements of the first choice whose condition is true, else ``default``."""
    if len(condlist) != len(choicelist) or not condlist:
        raise ArgumentError(
            f"numpy.select got {len(condlist)} conditions for {len(choicelist)} choices"
        )
    if wrong := [c.dtype.name for c in condlist if c.dtype.kind != "b"]:
        raise ArgumentTypeError(f"condlist of numpy.select takes booleans; found {wrong[0]}")
    found: Any = default
    for condition, choice in zip(condlist[::-1], choicelist[::-1], strict=True):
        found = where(condition, choice, found)
    return astype(found, result_type(*choicelist, default))


def _wrap_partition(title: str, function: Callable[..., Any]) -> Callable[..., object]:
    def partition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect") -> Any:
        x, axis = _flatten(title, a, axis)
        n = x.shape[axis]
        if kind != "introselect":
            raise ArgumentError(f"kind of numpy.{title} is {kind!r}; it takes 'introselect'")
        if wrong := [k for k in np.ravel(kth).tolist() if not -n <= k < n]:
            raise ArgumentError(f"kth of numpy.{title} is {wrong[0]}; the axis has {n} elements")
        return function(x, axis=axis)

    return partition


def _wrap_sort(title: str, function: Callable[..., Any]) -> Callable[..., object]:
    def ordered(a: Any, axis: int | None = -1, *, stable: bool | None = None) -> Any:
        x, axis = _flatten(title, a, axis)
        return function(x, axis=axis, stable=stable is not False)

    return ordered


@counterpart
def lexsort(keys: Sequence[Traced], axis: int = -1) -> object:
    """Returns the positions that sort by the last key, then by the one before, and so on."""
    first, *others = list(keys)
    order = argsort(first, axis=axis)
    for key in others:
        later = argsort(take_along_axis(key, order, axis=axis), axis=axis)
        order = take_along_axis(order, later, axis=axis)
    return order


def sort_complex(a: Any) -> object:
    """Returns the elements sorted along the last axis, as complex numbers."""
    x = sort(asarray(a))
    return x if x.dtype.kind == "c" else astype(x, result_type(inexact(x.dtype), np.complex64))


@counterpart
def isin(
    element: Traced,
    test_elements: Traced,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: str | None = None,
) -> object:
    """Returns where elements are among others; ``assume_unique`` and ``kind`` concern speed."""
    if kind not in (None, "sort", "table"):
        raise ArgumentError(f"kind of numpy.isin is {kind!r}; it takes None, 'sort' and 'table'")
    if kind == "table" and not {element.dtype.kind, test_elements.dtype.kind} <= set("biu"):
        raise ArgumentError("kind of numpy.isin is 'table', which takes integers")
    dtype = result_type(element, test_elements)
    x, known = astype(element, dtype), sort(ravel(astype(test_elements, dtype)))
    found = broadcast_to(asarray(False), x.shape)
    if known.size:
        found = known[clip(searchsorted(known, x), max=known.size - 1)] == x
    return ~found if invert else found


def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """Assigns to the diagonal of ``a``; with ``wrap`` it restarts in a tall matrix."""
    if a.ndim < 2 or (a.ndim > 2 and len({*a.shape}) > 1):
        raise ShapeError(f"a of numpy.fill_diagonal has shape {a.shape}; it takes equal sizes")
    rows, columns = a.shape[0], a.shape[-1]
    step = columns + 1 if a.ndim == 2 else sum(rows**i for i in range(a.ndim))
    end = columns * columns if a.ndim == 2 and not wrap else a.size
    places = np.arange(0, min(end, a.size), step)
    _assign_flat(a, places, _cycle(val, np.arange(places.size)))


def place(arr: Any, mask: Any, vals: Any) -> None:
    """Assigns ``vals``, cyclically, to the elements where ``mask`` is true."""
    chosen = ravel(asarray(mask)) != 0
    after = cumulative_sum(chosen)
    _assign_flat(arr, None, where(chosen, _cycle(vals, after - 1), ravel(arr)))


def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """Assigns ``v``, cyclically, to indices of the flattened array."""
    places = ravel(asarray(ind))
    if mode == "wrap":
        places = places % a.size
    elif mode == "clip":
        places = clip(places, 0, a.size - 1)
    elif mode != "raise":
        raise ArgumentError(f"mode of numpy.put is {mode!r}; it takes 'raise', 'wrap' and 'clip'")
    elif is_known(places) and places.size and (abs(places + 0.5) > a.size).any():
        raise ArgumentError(f"ind of numpy.put has places beyond the {a.size} elements")
    _assign_flat(a, places, _cycle(v, np.arange(places.size)))


def putmask(a: Any, mask: Any, values: Any) -> None:
    """Assigns the elements of ``values`` at the positions where ``mask`` is true."""
    chosen = ravel(asarray(mask)) != 0
    _assign_flat(a, None, where(chosen, _cycle(values, np.arange(a.size)), ravel(a)))


def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """Assigns ``src`` to the elements of ``dst`` where ``where`` is true."""
    source = asarray(src)
    kind, number = source.dtype, python_scalar(src)
    if number is not None:  # gets the destination's dtype, if that has its kind
        kind = result_type(dst.dtype, number)
        source = asarray(number, dtype=kind)
    if not np.can_cast(kind, dst.dtype, casting):
        raise ArgumentTypeError(
            f"numpy.copyto converts {source.dtype.name} to {dst.dtype.name}, which casting "
            f"{casting!r} does not admit"
        )
    chosen = broadcast_to(asarray(where), dst.shape)
    dst[...] = _where(chosen, broadcast_to(astype(source, dst.dtype), dst.shape), dst)


_where = where


def _cycle(values: Any, places: Any) -> Any:
    flat = ravel(asarray(values))
    return flat[places % flat.size] if flat.size else flat


def _assign_flat(a: Any, places: Any, values: Any) -> None:
    values = astype(values, a.dtype)
    new = values if places is None else ravel(a).at[places].set(values)
    a[...] = reshape(new, a.shape)


def _wrap_indices(function: Callable[..., Any]) -> Callable[..., object]:
    def indices(arr: Any, k: int = 0) -> tuple[Any, ...]:
        found = function(np.broadcast_to(0, arr.shape), *([k] if k else []))
        return tuple(asarray(places.astype(default_int())) for places in found)

    return indices


FUNCTIONS: dict[str, Callable[..., object]] = {
    "append": append,
    "apply_along_axis": apply_along_axis,
    "apply_over_axes": apply_over_axes,
    "argpartition": _wrap_partition("argpartition", argsort),
    "argsort": _wrap_sort("argsort", argsort),
    "argwhere": lambda a: stack(nonzero(reshape(a, a.shape or (1,))), axis=-1)[:, : np.ndim(a)],
    "atleast_1d": _wrap_atleast(1),
    "atleast_2d": _wrap_atleast(2),
    "atleast_3d": _wrap_atleast(3),
    "block": block,
    "choose": choose,
    "compress": compress,
    "copyto": copyto,
    "delete": delete,
    "diag_indices_from": _wrap_indices(np.diag_indices_from),
    "extract": lambda condition, arr: compress(ravel(asarray(condition)), arr),
    "fill_diagonal": fill_diagonal,
    "flatnonzero": lambda a: nonzero(ravel(a))[0],
    "fliplr": _wrap_flip("fliplr", 1),
    "flipud": _wrap_flip("flipud", 0),
    "insert": insert,
    "isin": isin,
    "lexsort": lexsort,
    "partition": _wrap_partition("partition", sort),
    "piecewise": piecewise,
    "place": place,
    "put": put,
    "putmask": putmask,
    "rot90": rot90,
    "select": select,
    "sort": _wrap_sort("sort", sort),
    "sort_complex": sort_complex,
    "tril_indices_from": _wrap_indices(np.tril_indices_from),
    "triu_indices_from": _wrap_indices(np.triu_indices_from),
}
"""The functions by NumPy's names, with NumPy's parameters."""
