"""NumPy's functions of sampled data: convolution, differences, interpolation, integrals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from plugrt.array_api.array_conversion import asarray
from plugrt.array_api.data_types import astype, result_type
from plugrt.array_api.elementwise.arithmetic import abs
from plugrt.array_api.elementwise.complex import conj
from plugrt.array_api.elementwise.float_properties import (
    clip,
    isnan,
)
from plugrt.array_api.indexing.functions import take
from plugrt.array_api.manipulation import (
    concat,
    reshape,
)
from plugrt.array_api.numpy_options import Traced, as_floats, counterpart
from plugrt.array_api.searching import searchsorted, where
from plugrt.array_api.sorting import argsort
from plugrt.array_api.statistics import cumulative_sum, sum
from plugrt.array_api.utility import diff
from plugrt.errors import ArgumentError, ArgumentTypeError, ShapeError
from plugrt.lax.convolution import conv_general_dilated
from plugrt.tracing.argument_checks import normalize_axes, normalize_axis
from plugrt.tracing.promotion import dtype_kind, inexact


def _slice(x: Any, axis: int, first: int | None, last: int | None) -> Any:
    return x[(*(slice(None),) * axis, slice(first, last))]


@counterpart
def correlate(a: Traced, v: Traced, mode: str = "valid") -> object:
    """Returns the cross-correlation of two vectors; the second is conjugated."""
    return _convolve("correlate", a, conj(v)[::-1], mode, swaps=True)


@counterpart
def convolve(a: Traced, v: Traced, mode: str = "full") -> Any:
    """Returns the convolution of two vectors."""
    return _convolve("convolve", a, v, mode)


def _convolve(title: str, a: Any, v: Any, mode: str, swaps: bool = False) -> Any:
    a, v = (reshape(x, (1,)) if not x.ndim else x for x in (a, v))
    if mode not in ("full", "same", "valid"):
        raise ArgumentError(f"mode of numpy.{title} is {mode!r}; it takes 'full', 'same', 'valid'")
    if a.ndim != 1 or v.ndim != 1 or not a.size or not v.size:
        shapes = f"{a.shape} and {v.shape}"
        raise ShapeError(f"numpy.{title} takes two vectors with elements; found {shapes}")
    dtype = result_type(a, v)
    wide = np.dtype(np.int32) if dtype.kind == "b" else dtype
    long, short = sorted((astype(a, wide), astype(v, wide)), key=lambda x: -x.shape[0])
    m = short.shape[0]
    half = m - 1 - m // 2 if swaps and a.shape[0] < v.shape[0] else m // 2
    front = {"full": m - 1, "same": half, "valid": 0}[mode]
    back = {"full": m - 1, "same": m - 1 - half, "valid": 0}[mode]
    found = conv_general_dilated(
        long[None, None], short[None, None, ::-1], (1,), [(front, back)], precision="highest"
    )
    return astype(found[0, 0], dtype)


@counterpart
def trapezoid(y: Traced, x: Traced = None, dx: Traced = 1.0, axis: int = -1) -> object:
    """Returns the integral along an axis by the trapezoidal rule, at ``x`` or ``dx`` apart."""
    axis = normalize_axis("trapezoid", axis, y.ndim)
    step: Any = dx
    if x is not None:
        step = diff(x, axis=-1 if x.ndim == 1 else axis)
        if x.ndim == 1:
            step = reshape(step, [-1 if i == axis else 1 for i in range(y.ndim)])
    both = _slice(y, axis, 1, None) + _slice(y, axis, None, -1)
    return sum(step * both / 2.0, axis=axis)


@counterpart
def _gradient(
    f: Traced, spacing: Sequence[Traced], axes: tuple[int, ...], edge_order: int
) -> object:
    (x,) = as_floats(f)
    found = []
    for axis, h in zip(axes, spacing, strict=True):
        wide = [-1 if i == axis else 1 for i in range(x.ndim)]
        part = partial(_slice, x, axis)
        if not h.ndim:
            inner = (part(2, None) - part(None, -2)) / (2 * h)
            first = last = h
            second = before = h
        else:
            steps = astype(diff(h), x.dtype)
            a, b = (reshape(s, wide) for s in (steps[:-1], steps[1:]))
            inner = (
                part(None, -2) * (-b / (a * (a + b)))
                + part(1, -1) * ((b - a) / (a * b))
                + part(2, None) * (a / (b * (a + b)))
            )
            first, last = steps[0], steps[-1]
            second, before = (steps[1], steps[-2]) if edge_order == 2 else (first, last)
        if edge_order == 1:
            start = (part(1, 2) - part(0, 1)) / first
            end = (part(-1, None) - part(-2, -1)) / last
        else:
            start = _edge(part(0, 1), part(1, 2), part(2, 3), first, second)
            end = -_edge(part(-1, None), part(-2, -1), part(-3, -2), last, before)
        found.append(astype(concat([start, inner, end], axis=axis), x.dtype))
    return found


def _edge(x: Any, y: Any, z: Any, a: Any, b: Any) -> Any:
    """Returns the derivative at ``x`` of a parabola through three points, ``a`` and ``b`` apart."""
    return -x * (2 * a + b) / (a * (a + b)) + y * (a + b) / (a * b) - z * a / (b * (a + b))


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> object:
    """Returns the differences of neighbours divided by their distance, along each axis."""
    x = asarray(f)
    axes = normalize_axes("gradient", axis, x.ndim)
    if edge_order not in (1, 2):
        raise ArgumentError(f"edge_order of numpy.gradient is {edge_order!r}; it takes 1 and 2")
    given = [1.0] * len(axes) if not varargs else list(varargs)
    if len(given) == 1 and np.ndim(given[0]) == 0:
        given = given * len(axes)
    if len(given) != len(axes):
        raise ArgumentTypeError(
            f"numpy.gradient got {len(given)} spacings for {len(axes)} axes; it takes one for "
            "all axes, or one for each"
        )
    spacing = [asarray(h) for h in given]
    for i, h in zip(axes, spacing, strict=True):
        if h.ndim > 1 or (h.ndim == 1 and h.shape[0] != x.shape[i]):
            raise ShapeError(
                f"numpy.gradient got a spacing of shape {h.shape} along axis {i} of shape "
                f"{x.shape}; it takes a number, or one for each element of the axis"
            )
        if x.shape[i] <= edge_order:
            raise ShapeError(
                f"numpy.gradient along axis {i} of shape {x.shape} takes {edge_order + 1} elements"
            )
    found = _gradient(x, spacing, tuple(axes), edge_order)
    return found[0] if len(axes) == 1 else tuple(found)


def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: float | None = None
) -> object:
    """Returns the linear interpolation at ``x`` of the values ``fp`` at the increasing ``xp``."""
    if period == 0:
        raise ArgumentError("period of numpy.interp is 0")
    x, known, values = map(asarray, (x, xp, fp))
    if known.ndim != 1 or values.shape != known.shape or not known.size:
        raise ShapeError(f"numpy.interp got xp of shape {known.shape} and fp of {values.shape}")
    return _interp(x, known, values, left=left, right=right, period=period)


@counterpart
def _interp(
    x: Traced,
    xp: Traced,
    fp: Traced,
    left: Traced,
    right: Traced,
    period: float | None,
) -> object:
    x, known = as_floats(x, xp)
    values = astype(fp, result_type(inexact(fp.dtype), x.dtype))
    if period is not None:
        x, known = x % abs(period), known % abs(period)
        order = argsort(known)
        known, values = take(known, order, axis=0), take(values, order, axis=0)
        known = concat([known[-1:] - abs(period), known, known[:1] + abs(period)])
        values = concat([values[-1:], values, values[:1]])
    last = known.shape[0] - 1
    i = clip(searchsorted(known, x, side="right") - 1, 0, max(last - 1, 0))
    low, high = known[i], known[clip(i + 1, max=last)]
    first, second = values[i], values[clip(i + 1, max=last)]
    width = high - low
    found = first + (x - low) * ((second - first) / where(width == 0, 1, width))
    found = where(x == high, second, where(x == low, first, found))
    if period is None:
        found = where(x < known[0], values[0] if left is None else left, found)
        found = where(x > known[-1], values[-1] if right is None else right, found)
        found = where(x == known[-1], values[-1], found)
    return astype(where(isnan(x), math.nan, found), values.dtype)


@counterpart
def unwrap(
    p: Traced, discont: float | None = None, axis: int = -1, *, period: float = 2 * math.pi
) -> Any:
    """Returns values whose steps along an axis are at most half a period, or ``discont``."""
    axis = normalize_axis("unwrap", axis, p.ndim)
    whole = dtype_kind(p.dtype) in "iu" and isinstance(period, int)
    x = p if whole else astype(p, inexact(p.dtype))
    step = diff(x, axis=axis)
    low = -(period // 2) if whole else -period / 2
    wrapped = (step - low) % period + low
    if not whole or period % 2 == 0:
        wrapped = where((wrapped == low) & (step > 0), -low, wrapped)
    limit = period / 2 if discont is None else max(discont, period / 2)
    fix = where(abs(step) < limit, 0, wrapped - step)
    later = _slice(x, axis, 1, None) + cumulative_sum(fix, axis=axis, dtype=x.dtype)
    return concat([_slice(x, axis, 0, 1), later], axis=axis)


FUNCTIONS: dict[str, Callable[..., object]] = {
    "convolve": convolve,
    "correlate": correlate,
    "gradient": gradient,
    "interp": interp,
    "trapezoid": trapezoid,
    "unwrap": unwrap,
}
"""The functions by NumPy's names, with NumPy's parameters."""
