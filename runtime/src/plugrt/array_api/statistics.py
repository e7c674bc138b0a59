"""Statistical functions: `sum`, `mean`, `var`, `max`… and cumulative variants."""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrt.array_api.dtypes import as_dtype
from plugrt.array_api.elementwise.operands import ANY, NUMERIC, admit, unary
from plugrt.array_api.fold import (
    Combine,
    accumulate,
    binary_combiner,
    count_reduced,
    fold,
    highest,
    lowest,
    sum_dtype,
    widen_for_sum,
)
from plugrt.array_api.sorting import larger, smaller
from plugrt.errors import ShapeError
from plugrt.tracing.argument_checks import normalize_axes, normalize_axis, reduced_shape
from plugrt.tracing.emit import (
    broadcast_in_dim,
    concatenate,
    convert,
    emit,
    full,
    hlo,
    reshape,
)
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import inexact
from plugrt.tracing.tracer import Tracer
from plugrt.typing import Axes, DTypeLike

Dtype = np.dtype[np.generic]


@operation(static=("axis", "dtype", "keepdims"), weak_by="none")
def sum(
    x: Tracer, /, axis: Axes = None, dtype: DTypeLike | None = None, *, keepdims: bool = False
) -> Tracer:
    """Returns the sum over ``axis`` (None: over all elements); 0 for no elements.

    The result has ``dtype``; the default is the dtype of ``x``, but the default integer dtype for
    booleans and narrower integers (unsigned stay unsigned). Floats narrower than float32 are summed
    in float32. Numeric dtypes and bool; the result lacks the axes unless ``keepdims``. Raises
    `DtypeError` for a ``dtype`` of bool, `AxisError`.

    >>> xp.sum(xp.asarray([[1, 2], [3, 4]]), axis=0)
    Array([4, 6], dtype=int32)
    >>> xp.sum(xp.asarray([True, True]))
    Array(2, dtype=int32)
    """
    return _reduce_sum("sum", hlo.add, 0, x, axis, dtype, keepdims)


@operation(static=("axis", "dtype", "keepdims"), weak_by="none")
def prod(
    x: Tracer, /, axis: Axes = None, dtype: DTypeLike | None = None, *, keepdims: bool = False
) -> Tracer:
    """Returns the product over ``axis`` (None: over all elements); 1 for no elements.

    Dtypes, ``keepdims`` and errors as `sum`: the result lacks the axes unless ``keepdims``, and
    booleans and narrow integers are multiplied in the default integer dtype. Raises `DtypeError`
    for a ``dtype`` of bool, `AxisError`.
    """
    return _reduce_sum("prod", hlo.multiply, 1, x, axis, dtype, keepdims)


def _reduce_sum(
    function: str, builder: Any, initial: int, x: Tracer, axis: Axes, dtype: Any, keepdims: bool
) -> Tracer:
    axes = normalize_axes(function, axis, x.ndim)
    x, result = _prepare_sum(function, x, dtype)
    return convert(fold(binary_combiner(builder), x, initial, axes, keepdims=keepdims), result)


def _prepare_sum(function: str, x: Tracer, dtype: object) -> tuple[Tracer, Dtype]:
    """Returns ``x`` in the dtype of the accumulator, and the dtype of the sum."""
    x = unary(function, x, ANY)
    result = sum_dtype(x.dtype) if dtype is None else as_dtype(dtype)
    admit(function, "dtype", result, NUMERIC)
    return widen_for_sum(convert(x, result)), result


@operation(static=("axis", "keepdims"), weak_by="none")
def max(x: Tracer, /, axis: Axes = None, *, keepdims: bool = False) -> Tracer:
    """Returns the greatest element over ``axis``; NaN if there is a NaN among them.

    Complex numbers are compared by their real and then by their imaginary part, as in NumPy and
    JAX. The result has the dtype of ``x``; without ``keepdims`` the reduced axes are removed.
    Raises `ShapeError` where there are no elements to choose from, and `AxisError`.

    >>> xp.max(xp.asarray([[1, 5], [3, 4]]), axis=1, keepdims=True)
    Array([[5],
           [4]], dtype=int32)
    """
    return _extreme("max", larger, lowest, x, axis, keepdims)


@operation(static=("axis", "keepdims"), weak_by="none")
def min(x: Tracer, /, axis: Axes = None, *, keepdims: bool = False) -> Tracer:
    """Returns the least element over ``axis``; NaN if there is a NaN among them.

    Complex numbers are compared by their real and then by their imaginary part, as in NumPy and
    JAX. The result has the dtype of ``x``; without ``keepdims`` the reduced axes are removed.
    Raises `ShapeError` where there are no elements to choose from, and `AxisError`.
    """
    return _extreme("min", smaller, highest, x, axis, keepdims)


def _extreme(
    function: str, combine: Combine, identity: Any, x: Tracer, axis: Axes, keepdims: bool
) -> Tracer:
    x = unary(function, x)
    axes = normalize_axes(function, axis, x.ndim)
    require_elements(function, x, axes)
    return fold(combine, x, identity(x.dtype), axes, keepdims=keepdims)


def require_elements(function: str, x: Tracer, axes: tuple[int, ...]) -> None:
    """Raises `ShapeError` if a reduction without identity has no elements to reduce."""
    if x.size == 0 and 0 not in reduced_shape(x.shape, axes, keepdims=False):
        raise ShapeError(
            f"{function} over axes {axes} got x of shape {x.shape}, which has no elements there "
            "to choose from"
        )


@operation(static=("axis", "keepdims"), weak_by="none")
def mean(x: Tracer, /, axis: Axes = None, *, keepdims: bool = False) -> Tracer:
    """Returns the arithmetic mean over ``axis``, NaN where there are no elements.

    The result has the dtype of a floating ``x``, float64 for integers of 64 bits, and float32 for
    other integers and booleans. The axes are removed unless ``keepdims``. Raises `AxisError`.

    >>> xp.mean(xp.asarray([1, 2, 6]))
    Array(3., dtype=float32)
    """
    x, result = _prepare_mean("mean", x)
    return convert(_mean(x, normalize_axes("mean", axis, x.ndim), keepdims), result)


@operation(static=("axis", "correction", "keepdims", "ddof"), weak_by="none")
def var(
    x: Tracer,
    /,
    axis: Axes = None,
    *,
    correction: float = 0.0,
    keepdims: bool = False,
    ddof: float | None = None,
) -> Tracer:
    """Returns the variance over ``axis``: squared distances from the mean over N - ``correction``.

    ``ddof`` is NumPy's name of ``correction``, and precedes it. The result is NaN without elements;
    if N <= ``correction``, it is NumPy's (division by zero). Complex ``x`` gives the variance of
    the distances, which is real. Dtypes as `mean`. Raises `AxisError`.
    """
    x, result = _prepare_mean("var", x)
    less = correction if ddof is None else ddof
    variance = _variance(x, normalize_axes("var", axis, x.ndim), less, keepdims)
    return convert(variance, _find_real_dtype(result))


@operation(static=("axis", "correction", "keepdims", "ddof"), weak_by="none")
def std(
    x: Tracer,
    /,
    axis: Axes = None,
    *,
    correction: float = 0.0,
    keepdims: bool = False,
    ddof: float | None = None,
) -> Tracer:
    """Returns the standard deviation over ``axis``: the square root of `var`.

    ``ddof`` is NumPy's name of ``correction``, and precedes it. Dtypes as `mean`. Raises
    `AxisError`.

    >>> xp.std(xp.asarray([1.0, 3.0]), correction=1)
    Array(1.4142135, dtype=float32)
    """
    x, result = _prepare_mean("std", x)
    less = correction if ddof is None else ddof
    variance = _variance(x, normalize_axes("std", axis, x.ndim), less, keepdims)
    return convert(emit(hlo.sqrt, variance), _find_real_dtype(result))


def _prepare_mean(function: str, x: Tracer) -> tuple[Tracer, Dtype]:
    """Returns ``x`` as floats to compute with, and the dtype of the result."""
    x = unary(function, x, ANY)
    result = inexact(x.dtype)
    return widen_for_sum(convert(x, result)), result


def _find_real_dtype(dtype: Dtype) -> Dtype:
    return np.dtype(f"float{dtype.itemsize * 4}") if dtype.kind == "c" else dtype


def _divide_by(x: Tracer, count: float) -> Tracer:
    return emit(hlo.divide, x, full(x.shape, count, x.dtype))


def _mean(x: Tracer, axes: tuple[int, ...], keepdims: bool) -> Tracer:
    return _divide_by(
        fold(binary_combiner(hlo.add), x, 0, axes, keepdims=keepdims), count_reduced(x.shape, axes)
    )


def _variance(x: Tracer, axes: tuple[int, ...], correction: float, keepdims: bool) -> Tracer:
    mean = _mean(x, axes, False)
    kept = [i for i in range(x.ndim) if i not in axes]
    away = emit(hlo.subtract, x, broadcast_in_dim(mean, x.shape, kept))
    if x.dtype.kind == "c":
        re, im = emit(hlo.real, away), emit(hlo.imag, away)
        square = emit(hlo.add, emit(hlo.multiply, re, re), emit(hlo.multiply, im, im))
    else:
        square = emit(hlo.multiply, away, away)
    # NumPy divides by zero, not by a negative number, if the correction exceeds the count.
    count = count_reduced(x.shape, axes) - correction
    return _divide_by(
        fold(binary_combiner(hlo.add), square, 0, axes, keepdims=keepdims),
        count if count > 0 else 0,
    )


@operation(static=("axis", "dtype", "include_initial"), weak_by="none")
def cumulative_sum(
    x: Tracer,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Tracer:
    """Returns the running sums along ``axis``, which may be left out for one dimension.

    With ``include_initial`` they begin with 0, so that there is one more; otherwise the result has
    the shape of ``x``. Dtypes as `sum`. Raises `ShapeError` for several dimensions without an axis,
    and `AxisError`.

    >>> xp.cumulative_sum(xp.asarray([1, 2, 3]), include_initial=True)
    Array([0, 1, 3, 6], dtype=int32)
    """
    return _accumulate("cumulative_sum", hlo.add, 0, x, axis, dtype, include_initial)


@operation(static=("axis", "dtype", "include_initial"), weak_by="none")
def cumulative_prod(
    x: Tracer,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Tracer:
    """Returns the running products along ``axis``, which may be left out for one dimension.

    With ``include_initial`` they begin with 1, so that there is one more. Dtypes as `sum`. Raises
    `ShapeError` and `DtypeError` as `cumulative_sum`.
    """
    return _accumulate("cumulative_prod", hlo.multiply, 1, x, axis, dtype, include_initial)


def _accumulate(
    function: str,
    builder: Any,
    initial: int,
    x: Tracer,
    axis: int | None,
    dtype: Any,
    include_initial: bool,
) -> Tracer:
    if x.ndim == 0:
        x = reshape(x, (1,))  # as NumPy; the standard requires at least one dimension
    if axis is None and x.ndim != 1:
        raise ShapeError(
            f"{function} got x of shape {x.shape} and no axis; axis may be left out for arrays "
            "of one dimension only"
        )
    along = normalize_axis(function, 0 if axis is None else axis, x.ndim)
    x, result = _prepare_sum(function, x, dtype)
    running = convert(accumulate(binary_combiner(builder), x, initial, along), result)
    if not include_initial:
        return running
    first = (*x.shape[:along], 1, *x.shape[along + 1 :])
    return concatenate([full(first, initial, result), running], along)


__all__ = [
    "cumulative_prod", "cumulative_sum", "max", "mean", "min", "prod", "std", "sum", "var",
]  # fmt: skip
