"""Functions of NumPy that the standard lacks or names differently, as in ``jax.numpy``."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from plugrt.array_api.array_conversion import asarray
from plugrt.array_api.diagonals import diagonal
from plugrt.array_api.elementwise.arithmetic import abs
from plugrt.array_api.elementwise.float_properties import isfinite, isnan
from plugrt.array_api.elementwise.operands import ANY, FLOATING, binary, unary
from plugrt.array_api.fold import count_reduced
from plugrt.array_api.indexing.functions import take
from plugrt.array_api.manipulation import broadcast_to, concat, permute_dims, stack
from plugrt.array_api.matrix_products import tensordot
from plugrt.array_api.searching import where
from plugrt.array_api.sorting import sort
from plugrt.array_api.utility import all, any
from plugrt.errors import ArgumentError, ShapeError
from plugrt.execution.arrays.array import Array
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.tracing.argument_checks import normalize_axes, normalize_axis
from plugrt.tracing.emit import constant, convert, emit, full, hlo, iota, reshape, with_weakness
from plugrt.tracing.operation import operation
from plugrt.tracing.tracer import Tracer
from plugrt.typing import ArrayLike, Axes, DeviceLike, DTypeLike, OutSharding

_INDEX = np.dtype(np.int32)


@with_argument_errors
def array(
    object: Any,
    dtype: DTypeLike | None = None,
    copy: bool = True,
    *,
    device: DeviceLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Returns `asarray` of ``object``, as a copy unless ``copy`` is False.

    Raises as `asarray`.
    """
    wanted = True if copy else None
    return asarray(object, dtype=dtype, device=device, copy=wanted, out_sharding=out_sharding)


@with_argument_errors
def concatenate(arrays: Sequence[ArrayLike], axis: int | None = 0) -> Array:
    """Returns `concat` of arrays along ``axis``; None flattens them. Raises as `concat`."""
    joined: Array = concat(arrays, axis=axis)
    return joined


@with_argument_errors
def vstack(arrays: Sequence[ArrayLike]) -> Array:
    """Returns arrays joined along the first axis; vectors are rows. Raises as `concat`."""
    rows = [_reshape_to(x, 2, front=True) for x in map(asarray, arrays)]
    return concatenate(rows)


@with_argument_errors
def hstack(arrays: Sequence[ArrayLike]) -> Array:
    """Returns arrays joined along the second axis, vectors along the first. Raises as `concat`."""
    parts = [_reshape_to(x, 1, front=True) for x in map(asarray, arrays)]
    return concatenate(parts, axis=0 if parts and parts[0].ndim == 1 else 1)


@with_argument_errors
def dstack(arrays: Sequence[ArrayLike]) -> Array:
    """Returns arrays joined along the third axis; matrices are stacked. Raises as `concat`."""
    rows = [_reshape_to(x, 2, front=True) for x in map(asarray, arrays)]
    return concatenate([_reshape_to(x, 3, front=False) for x in rows], axis=2)


@with_argument_errors
def column_stack(arrays: Sequence[ArrayLike]) -> Array:
    """Returns vectors as the columns of a matrix; matrices are joined. Raises as `concat`."""
    columns = [_reshape_to(x, 1, front=True) for x in map(asarray, arrays)]
    return concatenate([_reshape_to(x, 2, front=False) for x in columns], axis=1)


def _reshape_to(x: Array, ndim: int, *, front: bool) -> Array:
    ones = (1,) * (ndim - x.ndim)
    return x.reshape((*ones, *x.shape) if front else (*x.shape, *ones))


@with_argument_errors
def split(ary: ArrayLike, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Array]:
    """Returns the parts of an array along ``axis``: a number of equal ones, or between indices.

    Raises `ShapeError` if the axis has no equal parts, `AxisError`.

    >>> [part.shape for part in xp.split(xp.ones(6), [1, 3])]
    [(1,), (2,), (3,)]
    """
    x = asarray(ary)
    at = normalize_axis("split", axis, x.ndim)
    size = x.shape[at]
    if isinstance(indices_or_sections, int | np.integer):
        count = operator.index(indices_or_sections)
        if count < 1 or size % count:
            raise ShapeError(
                f"split of shape {x.shape} along axis {axis} into {count} equal parts: {size} is "
                "not a multiple of that"
            )
        cuts = [size // count * i for i in range(1, count)]
    else:
        cuts = [operator.index(i) for i in indices_or_sections]
    before = (slice(None),) * at
    pairs = zip([None, *cuts], [*cuts, None], strict=True)
    return [x[(*before, slice(first, last))] for first, last in pairs]


@operation(static=("axes",))
def transpose(a: Tracer, axes: Sequence[int] | None = None) -> Tracer:
    """Returns an array with its axes in the order ``axes``, or reversed. Any dtype.

    Raises `AxisError`, and `ArgumentError` unless every axis is named once.
    """
    reverse = tuple(range(a.ndim))[::-1]
    result: Tracer = permute_dims(a, reverse if axes is None else tuple(axes))
    return result


@operation(shards=True)
def dot(a: Tracer, b: Tracer) -> Tracer:
    """Returns the sum of products over the last axis of ``a`` and the last but one of ``b``.

    Multiplies if one of them is 0-d. Numeric dtypes and bool. Raises `ShapeError` if the sizes
    differ.
    """
    if not a.ndim or not b.ndim:
        scalar: Tracer = a * b
        return scalar
    axes = (a.ndim - 1,), (b.ndim - 2 if b.ndim > 1 else 0,)
    result: Tracer = tensordot(a, b, axes=axes)
    return result


@operation
def outer(a: Tracer, b: Tracer) -> Tracer:
    """Returns the products of each element of ``a``, flattened, with each of ``b``, flattened.

    Numeric dtypes and bool. (The standard's ``linalg.outer`` accepts only vectors.) Raises
    `NotAnArray` for lists.
    """
    column = with_weakness(reshape(a, (a.size, 1)), a.weak)
    result: Tracer = column * with_weakness(reshape(b, (1, b.size)), b.weak)
    return result


@operation(static=("k",))
def diag(v: Tracer, k: int = 0) -> Tracer:
    """Returns a matrix with the vector ``v`` on its ``k``-th diagonal, or a matrix's diagonal.

    Any dtype. Raises `ShapeError` for arrays of other dimensions.

    >>> xp.diag(xp.asarray([1, 2]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    above = operator.index(k)
    if v.ndim == 1:
        n = v.shape[0] + (above if above > 0 else -above)
        row, column = (iota((n, n), i, _INDEX) for i in range(2))
        first = 0 if above < 0 else above
        edges = np.asarray([(first, n - v.shape[0] - first)])
        wide = _pad(v, full((), 0, v.dtype), edges)
        result: Tracer = where(column - row == above, wide, full((), 0, v.dtype))
        return result
    if v.ndim != 2:
        raise ShapeError(f"diag got v of shape {v.shape}; it takes a vector or a matrix")
    along: Tracer = diagonal(v, offset=above)
    return along


@with_argument_errors
def isclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Returns where ``|a - b| <= atol + rtol * |b|``, as bool; infinities are close to themselves.

    Any dtype, promoted; the shapes broadcast. NaN is close to NaN with ``equal_nan`` only.
    Raises `ShapeError` for shapes that do not broadcast.
    """
    numbers = {
        name: x if isinstance(x, float | int) else None
        for name, x in (("rtol", rtol), ("atol", atol))
    }
    arrays = [x for x, number in zip((rtol, atol), numbers.values(), strict=True) if number is None]
    close: Array = _isclose(a, b, *arrays, **numbers, equal_nan=equal_nan)
    return close


@operation(static=("rtol", "atol", "equal_nan"), weak_by="none", title="isclose")
def _isclose(
    a: Tracer, b: Tracer, *arrays: Tracer, rtol: float | None, atol: float | None, equal_nan: bool
) -> Tracer:
    """Returns the result of `isclose`; tolerances that are None are in ``arrays``."""
    a, b = binary("isclose", a, b, ANY, ("a", "b"))
    if a.dtype.kind in "biu":
        a, b = (unary("isclose", x, FLOATING) for x in (a, b))
    size = abs(b)
    given = iter([convert(x, size.dtype) for x in arrays])
    relative, absolute = (next(given) if x is None else x for x in (rtol, atol))
    finite = isfinite(a) & isfinite(b)
    near = finite & (abs(a - b) <= absolute + relative * size)
    close: Tracer = near | (a == b)
    if equal_nan:
        close = close | (isnan(a) & isnan(b))
    return close


@with_argument_errors
def allclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Returns whether `isclose` holds everywhere, as a 0-d array of bool. Raises as `isclose`."""
    result: Array = all(isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan))
    return result


@operation(static=("axis", "keepdims"), weak_by="none")
def median(a: Tracer, axis: Axes = None, keepdims: bool = False) -> Tracer:
    """Returns the middle value over ``axis`` (None: all), or the mean of the two middle ones.

    NaN if there is a NaN among them. Real dtypes; integers become floats. Raises `AxisError`,
    `ShapeError` for no elements.

    >>> xp.median(xp.asarray([1.0, 4.0, 2.0, 3.0]))
    Array(2.5, dtype=float32)
    """
    x = unary("median", a, "f")
    over = normalize_axes("median", axis, x.ndim)
    kept = [i for i in range(x.ndim) if i not in over]
    x = permute_dims(x, (*kept, *over))
    x = reshape(x, (*(a.shape[i] for i in kept), count_reduced(a.shape, over)))
    n = x.shape[-1]
    if not n:
        raise ShapeError(f"median over axes {over} of shape {a.shape} has no elements")
    ordered = sort(x, axis=-1)
    middle: Tracer = (ordered[..., (n - 1) // 2] + ordered[..., n // 2]) / 2
    middle = where(any(isnan(x), axis=-1), np.nan, middle)
    shape = tuple(1 if i in over else s for i, s in enumerate(a.shape) if keepdims or i not in over)
    return reshape(middle, shape)


@operation(static=("pad_width", "mode"))
def pad(
    array: Tracer, pad_width: object, mode: str = "constant", constant_values: Any = 0
) -> Tracer:
    """Returns an array padded before and after, with ``constant_values`` by default.

    ``pad_width`` is a number for both ends of each axis, a pair (before, after), or such a pair for
    each axis; so is ``constant_values``. Any dtype. NumPy's modes "constant", and "edge",
    "reflect", "symmetric" and "wrap", which repeat elements; raises `ArgumentError` for others, and
    for widths that do not fit.

    >>> xp.pad(xp.asarray([1, 2]), (0, 2))
    Array([1, 2, 0, 0], dtype=int32)
    """
    if mode not in ("constant", *_REPEATING):
        raise ArgumentError(
            f"mode of pad is {mode!r}; plugrt has 'constant', {', '.join(map(repr, _REPEATING))}"
        )
    try:
        widths = np.broadcast_to(np.asarray(pad_width, np.int64), (array.ndim, 2))
    except ValueError as error:
        raise ArgumentError(
            f"pad_width of pad is {pad_width} for shape {array.shape}; it takes a number, a pair, "
            "or a pair for each axis"
        ) from error
    if (widths < 0).any():
        raise ArgumentError(f"pad_width of pad is {pad_width}; it takes 0 or more")
    if mode != "constant":
        if type(constant_values) is Tracer or constant_values != 0:
            raise ArgumentError(
                f"pad has constant_values and mode {mode!r}, which repeats elements"
            )
        return _repeat_ends(array, widths, mode)
    value = _join(constant_values, array.dtype)
    if not value.ndim:
        return _pad(array, value, widths)
    values = broadcast_to(value, (array.ndim, 2))
    for axis, end in np.argwhere(widths):  # axis by axis, as in NumPy
        here = np.zeros_like(widths)
        here[axis, end] = widths[axis, end]
        array = _pad(array, values[int(axis), int(end)], here)
    return array


def _join(values: Any, dtype: np.dtype[Any]) -> Tracer:
    """Returns a tracer, a number, or nested sequences of these, as an array."""
    if isinstance(values, list | tuple):
        joined: Tracer = stack([_join(value, dtype) for value in values])
        return joined
    return convert(values, dtype) if type(values) is Tracer else constant(values, dtype)


_REPEATING = ("edge", "reflect", "symmetric", "wrap")
"""Modes of `pad` that repeat elements of the array."""


def _repeat_ends(x: Tracer, widths: Any, mode: Any) -> Tracer:
    for axis, (before, after) in enumerate(widths.tolist()):
        if not (before or after):
            continue
        if not x.shape[axis]:
            raise ArgumentError(
                f"pad got shape {x.shape}; mode {mode!r} needs elements along axis {axis}"
            )
        numbers = np.pad(np.arange(x.shape[axis], dtype=_INDEX), (before, after), mode)
        x = take(x, constant(numbers, _INDEX), axis=axis, mode="clip")
    return x


def _pad(x: Tracer, value: Tracer, widths: Any) -> Tracer:
    before, after = (widths[:, i].tolist() for i in range(2))
    return emit(
        hlo.pad,
        x,
        value,
        edge_padding_low=before,
        edge_padding_high=after,
        interior_padding=[0] * x.ndim,
    )
