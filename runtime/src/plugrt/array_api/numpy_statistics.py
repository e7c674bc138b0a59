"""NumPy's statistics that the standard lacks: ignoring NaNs, weighted means, covariance."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from plugrt.array_api import linalg
from plugrt.array_api.array_conversion import asarray
from plugrt.array_api.data_types import astype, result_type
from plugrt.array_api.elementwise.arithmetic import abs
from plugrt.array_api.elementwise.complex import conj
from plugrt.array_api.elementwise.exponential import sqrt
from plugrt.array_api.elementwise.float_properties import clip, isnan
from plugrt.array_api.fold import count_reduced, highest, lowest
from plugrt.array_api.manipulation import broadcast_to, concat, reshape
from plugrt.array_api.methods import METHODS
from plugrt.array_api.numpy_options import Traced, counterpart, is_known
from plugrt.array_api.searching import count_nonzero
from plugrt.array_api.searching import where as choose
from plugrt.array_api.statistics import max, mean, min, sum
from plugrt.array_api.utility import any
from plugrt.errors import ArgumentError, ArgumentTypeError, ShapeError, ZeroWeights
from plugrt.tracing.argument_checks import normalize_axes
from plugrt.tracing.promotion import dtype_kind, inexact
from plugrt.tracing.trace import current_trace
from plugrt.typing import Axes, DTypeLike


def _mask_nans(a: Traced, where: Traced) -> Any:
    """Returns a mask of the chosen elements that are not NaN; None for all."""
    if dtype_kind(a.dtype) not in "fc":
        return where
    numbers = ~isnan(a)
    return numbers if where is None else numbers & where


def _wrap_reduction(name: str) -> Callable[..., object]:
    def reduction(
        a: Traced,
        axis: Axes = None,
        dtype: DTypeLike | None = None,
        keepdims: bool = False,
        initial: Traced = None,
        where: Traced = None,
    ) -> Any:
        options = {} if dtype is None else {"dtype": dtype}
        mask = _mask_nans(a, where)
        return METHODS[name](
            a, axis=axis, keepdims=keepdims, initial=initial, where=mask, **options
        )

    return counterpart(reduction, f"nan{name}")


def _wrap_extremum(name: str, identity: Callable[[Any], Any]) -> Callable[..., object]:
    def extremum(
        a: Traced,
        axis: Axes = None,
        keepdims: bool = False,
        initial: Traced = None,
        where: Traced = None,
    ) -> object:
        if where is not None and initial is None:
            METHODS[name](a, where=where)  # raises
        if dtype_kind(a.dtype) not in "fc":
            return METHODS[name](a, axis=axis, keepdims=keepdims, initial=initial, where=where)
        numbers, start = _mask_nans(a, where), asarray(identity(a.dtype), dtype=a.dtype)
        options: dict[str, Any] = {"axis": axis, "keepdims": keepdims}
        some = METHODS[name](choose(numbers, a, start), initial=initial, **options)
        if initial is not None:
            return some
        return choose(any(numbers, **options), some, asarray(np.nan, dtype=a.dtype))

    return counterpart(extremum, f"nan{name}")


@counterpart
def nanmean(
    a: Traced,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
    where: Traced = None,
) -> object:
    """Returns the mean of the elements that are numbers: NaN if there are none."""
    return METHODS["mean"](a, axis=axis, dtype=dtype, keepdims=keepdims, where=_mask_nans(a, where))


def _wrap_deviation(name: str) -> Callable[..., object]:
    def deviation(
        a: Traced,
        axis: Axes = None,
        dtype: DTypeLike | None = None,
        ddof: float = 0,
        keepdims: bool = False,
        where: Traced = None,
        correction: float | None = None,
    ) -> Any:
        less = ddof if correction is None else correction
        mask = _mask_nans(a, where)
        options: dict[str, Any] = {"axis": axis, "keepdims": keepdims}
        found = METHODS[name](a, dtype=dtype, ddof=less, where=mask, **options)
        count = count_nonzero(broadcast_to(True if mask is None else mask, a.shape), **options)
        return choose(count > less, found, np.nan)

    return counterpart(deviation, f"nan{name}")


def _wrap_running(name: str, identity: int) -> Callable[..., object]:
    def running(a: Traced, axis: int | None = None, dtype: DTypeLike | None = None) -> Any:
        numbers = _mask_nans(a, None)
        known = a if numbers is None else choose(numbers, a, identity)
        return METHODS[name](known, axis=axis, dtype=dtype)

    return counterpart(running, f"nan{name}")


def _wrap_position(name: str, identity: Callable[[Any], Any]) -> Callable[..., object]:
    def position(a: Traced, axis: int | None = None, keepdims: bool = False) -> Any:
        """Returns the first position of the extremum among the numbers; -1 if there are none."""
        numbers = _mask_nans(a, None)
        if numbers is None:
            return METHODS[name](a, axis=axis, keepdims=keepdims)
        known = choose(numbers, a, asarray(identity(a.dtype), dtype=a.dtype))
        found = METHODS[name](known, axis=axis, keepdims=keepdims)
        return choose(any(numbers, axis=axis, keepdims=keepdims), found, -1)

    return counterpart(position, f"nan{name}")


def average(
    a: Any,
    axis: Axes = None,
    weights: Any = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
) -> object:
    """Returns the mean weighted by ``weights``; with ``returned`` also the sum of weights."""
    a, weights = asarray(a), None if weights is None else asarray(weights)
    if _has_values(weights):
        over = axis if weights.shape == a.shape else None
        if bool(any(sum(weights, axis=over) == 0)):
            raise ZeroWeights("the weights of numpy.average sum to 0")
    return _average(a, axis, weights, returned, keepdims=keepdims)


def _has_values(x: object) -> bool:
    """Whether an array has values, and so have results of operations: no function is traced."""
    return x is not None and is_known(x) and current_trace() is None


@functools.partial(counterpart, title="average")
def _average(
    a: Traced,
    axis: Axes = None,
    weights: Traced = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
) -> object:
    if weights is None:
        found: Any = mean(a, axis=axis, keepdims=keepdims)
        whole = asarray(count_reduced(a.shape, normalize_axes("average", axis, a.ndim)))
    else:
        dtype = inexact(result_type(a, weights))
        wide: Any = astype(weights, dtype)
        if weights.shape != a.shape:
            axes = () if axis is None else normalize_axes("average", axis, a.ndim)
            if weights.shape != tuple(a.shape[i] for i in axes) or axis is None:
                raise ShapeError(
                    f"average got a of shape {a.shape}, axis {axis} and weights of shape "
                    f"{weights.shape}; weights have the shape of a, or of its axes"
                )
            ordered = sorted(range(len(axes)), key=lambda i: axes[i])
            wide = wide if len(axes) == 1 else METHODS["transpose"](wide, tuple(ordered))
            wide = reshape(wide, [n if i in axes else 1 for i, n in enumerate(a.shape)])
        wide = broadcast_to(wide, a.shape)
        whole = sum(wide, axis=axis, keepdims=keepdims)
        found = sum(astype(a, dtype) * wide, axis=axis, keepdims=keepdims) / whole
    return (found, broadcast_to(astype(whole, found.dtype), found.shape)) if returned else found


@counterpart
def ptp(a: Traced, axis: Axes = None, keepdims: bool = False) -> object:
    """Returns the difference of the greatest and the least element."""
    options: dict[str, Any] = {"axis": axis, "keepdims": keepdims}
    return max(a, **options) - min(a, **options)


def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: DTypeLike | None = None,
) -> Any:
    """Returns the covariances of variables: the rows, or columns, of ``m`` and ``y``."""
    m, y, fweights, aweights = (x if x is None else asarray(x) for x in (m, y, fweights, aweights))
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if _has_values(given) and bool(any(given < 0)):
            raise ArgumentError(f"{name} of numpy.cov has negative elements")
    return _cov(m, y, rowvar, bias, ddof, fweights, aweights, dtype=dtype)


@functools.partial(counterpart, title="cov")
def _cov(
    m: Traced,
    y: Traced = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Traced = None,
    aweights: Traced = None,
    *,
    dtype: DTypeLike | None = None,
) -> Any:
    if ddof is not None and ddof != int(ddof):
        raise ArgumentError(f"ddof of cov is {ddof}; it takes an integer")
    parts = [_read_variables("cov", x, rowvar) for x in (m, y) if x is not None]
    kind = inexact(result_type(*parts)) if dtype is None else dtype
    x = concat([astype(part, kind) for part in parts], axis=0)
    weights: Any = None
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is None:
            continue
        if given.shape != (x.shape[1],):
            raise ShapeError(f"{name} of cov has shape {given.shape}; it takes {(x.shape[1],)}")
        if name == "fweights" and given.dtype.kind not in "iu":
            raise ArgumentTypeError(f"fweights of cov takes integers; found {given.dtype.name}")
        weights = given if weights is None else weights * given
    less = (0 if bias else 1) if ddof is None else ddof
    if weights is None:
        total, middle = asarray(x.shape[1]), mean(x, axis=1, keepdims=True)
        factor = total - less
    else:
        total = sum(weights)
        middle = sum(x * weights, axis=1, keepdims=True) / total
        spread = total if aweights is None else sum(weights * aweights) / total
        factor = total - less * spread if aweights is not None else total - less
    away = x - middle
    right = away if weights is None else away * weights
    found: Any = (away @ conj(right).T) / astype(clip(factor, min=0), _real(x))
    return METHODS["squeeze"](found)


def _read_variables(title: str, x: Any, rowvar: bool) -> Any:
    if x.ndim > 2:
        raise ShapeError(f"{title} got a shape {x.shape}; it takes two dimensions at most")
    matrix = reshape(x, (1, x.size)) if x.ndim < 2 else x
    return matrix if rowvar or x.ndim < 2 else matrix.T


def _real(x: Any) -> Any:
    return abs(x).dtype


@counterpart
def corrcoef(
    x: Traced, y: Traced = None, rowvar: bool = True, *, dtype: DTypeLike | None = None
) -> object:
    """Returns the correlations of variables: the rows, or columns, of ``x`` and ``y``."""
    found = _cov(x, y, rowvar, dtype=dtype)
    if not found.ndim:
        return found / found
    scale = sqrt(linalg.diagonal(found).real)
    found = found / scale[:, None] / scale[None, :]
    if found.dtype.kind == "c":
        parts = [clip(part, -1, 1) for part in (found.real, found.imag)]
        return parts[0] + 1j * parts[1]
    return clip(found, -1, 1)


FUNCTIONS: dict[str, Callable[..., object]] = {
    "average": average,
    "corrcoef": corrcoef,
    "cov": cov,
    "nanargmax": _wrap_position("argmax", lowest),
    "nanargmin": _wrap_position("argmin", highest),
    "nancumprod": _wrap_running("cumprod", 1),
    "nancumsum": _wrap_running("cumsum", 0),
    "nanmax": _wrap_extremum("max", lowest),
    "nanmean": nanmean,
    "nanmin": _wrap_extremum("min", highest),
    "nanprod": _wrap_reduction("prod"),
    "nanstd": _wrap_deviation("std"),
    "nansum": _wrap_reduction("sum"),
    "nanvar": _wrap_deviation("var"),
    "ptp": ptp,
}
"""The functions by NumPy's names, with NumPy's parameters."""
