"""NumPy's quantiles and histograms."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plugrt.array_api.array_conversion import asarray
from plugrt.array_api.creation import zeros
from plugrt.array_api.data_types import astype, result_type
from plugrt.array_api.elementwise.float_properties import clip, isfinite, isnan
from plugrt.array_api.elementwise.rounding import ceil, floor, round
from plugrt.array_api.fold import count_reduced
from plugrt.array_api.indexing.functions import take_along_axis
from plugrt.array_api.manipulation import broadcast_to, moveaxis, reshape, unstack
from plugrt.array_api.methods import METHODS
from plugrt.array_api.numpy_options import Traced, counterpart, is_known
from plugrt.array_api.searching import searchsorted, where
from plugrt.array_api.sets import require_concrete
from plugrt.array_api.sorting import argsort, sort
from plugrt.array_api.statistics import cumulative_sum, max, min, sum
from plugrt.array_api.utility import all, diff
from plugrt.errors import ArgumentError, ArgumentTypeError, ShapeError
from plugrt.execution.arrays.array import Array
from plugrt.tracing.argument_checks import normalize_axes
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import default_int, dtype_kind, inexact
from plugrt.tracing.tracer import Tracer
from plugrt.typing import Axes


def _step(x: Any, tied: Any) -> object:
    """Returns the position after ``x``, or where ``tied`` the one before it."""
    return clip(where(tied, floor(x), floor(x) + 1), min=0)


def _between(alpha: float, beta: float) -> Callable[[Any, Any], object]:
    return lambda n, q: n * q + (alpha + q * (1 - alpha - beta)) - 1


_POSITIONS: dict[str, Callable[[Any, Any], Any]] = {
    "linear": lambda n, q: (n - 1) * q,
    "lower": lambda n, q: floor((n - 1) * q),
    "higher": lambda n, q: ceil((n - 1) * q),
    "nearest": lambda n, q: round((n - 1) * q),
    "midpoint": lambda n, q: (floor((n - 1) * q) + ceil((n - 1) * q)) / 2,
    "inverted_cdf": lambda n, q: _step(n * q - 1, n * q - 1 == floor(n * q - 1)),
    "averaged_inverted_cdf": lambda n, q: n * q - 1,
    "closest_observation": lambda n, q: _step(
        n * q - 1.5, (n * q - 1.5 == floor(n * q - 1.5)) & (floor(n * q - 1.5) % 2 == 1)
    ),
    "interpolated_inverted_cdf": _between(0, 1),
    "hazen": _between(0.5, 0.5),
    "weibull": _between(0, 0),
    "median_unbiased": _between(1 / 3, 1 / 3),
    "normal_unbiased": _between(3 / 8, 3 / 8),
}
"""The position of a quantile among ``n`` sorted elements, by method (Hyndman and Fan, 1996)."""
_EXACT = {"lower", "higher", "nearest", "inverted_cdf", "closest_observation"}
"""Methods that return elements, so that the dtype stays."""


def _wrap_quantile(title: str, scale: int, skip: bool) -> Callable[..., object]:
    def quantile(
        a: Any,
        q: Any,
        axis: Axes = None,
        method: str = "linear",
        keepdims: bool = False,
        weights: Any = None,
    ) -> object:
        a = asarray(a)
        if dtype_kind(a.dtype) == "c":
            raise ArgumentTypeError(f"{title} takes real dtypes; found {a.dtype.name}")
        # A number or a list has the precision of the array, as in NumPy.
        at = q if isinstance(q, Array | Tracer | np.ndarray) else asarray(q, dtype=inexact(a.dtype))
        if at.ndim > 1:
            raise ShapeError(f"{title} got q of shape {at.shape}; it takes a number or a vector")
        if is_known(at) and not ((at >= 0) & (at <= scale)).all():
            raise ArgumentError(f"q of {title} takes numbers from 0 to {scale}")
        if method not in _POSITIONS:
            taken = ", ".join(_POSITIONS)
            raise ArgumentError(f"method of {title} is {method!r}; it takes {taken}")
        if weights is not None and method != "inverted_cdf":
            raise ArgumentError(f"method of {title} is {method!r}; weights take 'inverted_cdf'")
        known = None if weights is None else asarray(weights)
        axes = normalize_axes(title, axis, a.ndim)
        if skip and not a.size:
            at = asarray(0.0)  # one NaN for all of q, as in NumPy
        options: dict[str, Any] = {"scale": scale, "skip": skip, "keepdims": keepdims}
        return _compute(a, at, known, axes=axes, method=method, **options)

    return quantile


@counterpart
def _compute(
    a: Traced,
    q: Traced,
    weights: Traced,
    axes: tuple[int, ...],
    method: str,
    scale: int,
    skip: bool,
    keepdims: bool,
) -> Any:
    kept = [n for i, n in enumerate(a.shape) if i not in axes]
    x = _join_axes(a, axes)
    if method not in _EXACT and dtype_kind(a.dtype) != "f":
        x = astype(x, inexact(a.dtype))
    q = astype(q, inexact(result_type(x, q) if dtype_kind(q.dtype) != "f" else q.dtype)) / scale
    if weights is None:
        found = _find_quantile(x, q, method, skip)
    else:
        w = _join_axes(weights, axes) if weights.ndim == a.ndim else weights
        found = _find_weighted(x, broadcast_to(w, x.shape), q, skip)
    wide = (*q.shape, *(1 if i in axes else n for i, n in enumerate(a.shape)))
    return reshape(found, wide if keepdims else (*q.shape, *kept))


def _join_axes(x: Any, axes: Sequence[int]) -> Any:
    """Returns an array with some axes merged into a last one."""
    kept = [n for i, n in enumerate(x.shape) if i not in axes]
    moved = moveaxis(x, tuple(axes), tuple(range(-len(axes), 0)))
    return reshape(moved, (*kept, count_reduced(x.shape, tuple(axes))))


def _find_quantile(x: Any, q: Any, method: str, skip: bool) -> object:
    size, floating = x.shape[-1], dtype_kind(x.dtype) == "f"
    q = reshape(q, (*q.shape, *(1,) * (x.ndim - 1)))
    if not size:
        return broadcast_to(asarray(np.nan, dtype=inexact(x.dtype)), (q + x[..., :1].sum(-1)).shape)
    ordered = sort(x)
    unknown = isnan(ordered[..., -1]) if floating else asarray(False)
    count = sum(~isnan(x), axis=-1) if floating and skip else asarray(size, dtype=default_int())
    at = _POSITIONS[method](astype(count, q.dtype), q)
    before, last = floor(at), astype(clip(count - 1, min=0), at.dtype)
    low, high = (_pick(ordered, clip(i, last * 0, last)) for i in (before, before + 1))
    found = low
    if method not in _EXACT:
        part = at - before
        if method == "midpoint":
            part = where(part == 0, 0.0, 0.5)
        elif method == "averaged_inverted_cdf":
            part = where(part == 0, 0.5, 1.0)
        between = high - low
        found = where(part >= 0.5, high - between * (1 - part), low + between * part)
        found = where(low == high, low, found) if floating else found
    if not floating:
        return found
    lost = count == 0 if skip else unknown
    return where(lost | isnan(q), asarray(np.nan, dtype=found.dtype), found)


def _pick(ordered: Any, places: Any) -> Any:
    """Returns elements along the last axis, at one position for each index of the other axes."""
    shape = np.broadcast_shapes(places.shape, ordered.shape[:-1])
    rows = broadcast_to(ordered, (*shape, ordered.shape[-1]))
    at = astype(broadcast_to(places, shape), default_int())
    return take_along_axis(rows, at[..., None], axis=-1)[..., 0]


def _find_weighted(x: Any, weights: Any, q: Any, skip: bool) -> object:
    floating = dtype_kind(x.dtype) == "f"
    if skip and floating:
        weights = where(isnan(x), 0, weights)
    order = argsort(x)
    ordered, w = (take_along_axis(v, order, axis=-1) for v in (x, weights))
    share = cumulative_sum(astype(w, q.dtype), axis=-1)
    share = share / share[..., -1:]
    share = where(share == 0, -1, share)
    q = reshape(q, (*q.shape, *(1,) * x.ndim))
    found = _pick(ordered, clip(sum(share < q, axis=-1), max=x.shape[-1] - 1))
    lost = isnan(ordered[..., -1]) if floating and not skip else isnan(share[..., -1])
    return where(lost, asarray(np.nan, dtype=x.dtype), found) if floating else found


_QUANTILE = _wrap_quantile("median", 1, False)
_NANQUANTILE = _wrap_quantile("nanmedian", 1, True)


def median(a: Any, axis: Any = None, keepdims: bool = False) -> object:
    """Returns the middle value, or the mean of the two middle ones; NaN if there is a NaN."""
    return _QUANTILE(a, 0.5, axis=axis, keepdims=keepdims)


def nanmedian(a: Any, axis: Any = None, keepdims: bool = False) -> object:
    """Returns the median of the elements that are numbers: NaN if there are none."""
    return _NANQUANTILE(a, 0.5, axis=axis, keepdims=keepdims)


def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    """Returns the edges of ``bins`` bins, or the given ones; a rule's name reads the data."""
    a = asarray(a)
    if isinstance(bins, str):
        host = np.asarray(require_concrete("histogram_bin_edges", a, "Pass a number of bins"))
        return asarray(np.histogram_bin_edges(host, bins, range, weights), dtype=inexact(a.dtype))
    if np.ndim(bins):
        edges = asarray(bins)
        if is_known(edges) and (np.diff(np.asarray(edges)) < 0).any():
            raise ArgumentError("bins of numpy.histogram have edges that decrease")
        return edges
    if bins != int(bins) or bins < 1:
        raise ArgumentError(f"bins of numpy.histogram is {bins!r}; it takes a number from 1")
    if range is not None and not (np.isfinite(range).all() and range[0] <= range[1]):
        raise ArgumentError(f"range of numpy.histogram is {range!r}; it takes (min, max)")
    if range is None and dtype_kind(a.dtype) == "f" and is_known(a) and not all(isfinite(a)):
        raise ArgumentError(
            "numpy.histogram got elements that are not finite, so that they have no range; give "
            "it one: range=(min, max)"
        )
    return _space_edges(a, bins=int(bins), range=None if range is None else tuple(range))


@operation(static=("bins", "range"), weak_by="none", title="histogram_bin_edges")
def _space_edges(a: Traced, *, bins: int, range: tuple[float, float] | None) -> object:
    a = astype(a, inexact(a.dtype))
    known = range or ((min(a), max(a)) if a.size else (0.0, 1.0))
    low, high = (asarray(x, dtype=a.dtype) for x in known)
    half = where(low == high, 0.5, 0.0)
    low, high = low - half, high + half
    steps = asarray(np.arange(bins + 1), dtype=a.dtype)
    edges = low + steps * ((high - low) / bins)
    return where(steps == bins, high, edges)


@counterpart
def _count_in_bins(
    columns: Sequence[Traced],
    edges: Sequence[Traced],
    weights: Traced,
    density: bool,
    dtype: np.dtype[Any],
) -> Any:
    """Returns the number of points, or the sum of weights, in each bin of several axes."""
    shape = tuple(e.shape[0] - 1 for e in edges)
    flat, inside = asarray(0), asarray(True)
    for x, e, n in zip(columns, edges, shape, strict=True):
        x = astype(x, result_type(inexact(x.dtype), e))
        i = where(x == e[-1], n - 1, searchsorted(e, x, side="right") - 1)
        inside = inside & (i >= 0) & (i < n)
        flat = flat * n + i
    places = where(inside, flat, math.prod(shape))
    each = asarray(1, dtype=dtype) if weights is None else astype(weights, dtype)
    counts = zeros(math.prod(shape) + 1, dtype=dtype).at[places].add(each)[:-1]
    counts = reshape(counts, shape)
    if not density:
        return counts
    volume = asarray(1.0, dtype=inexact(result_type(dtype, *edges)))
    for i, e in enumerate(edges):
        volume = volume * reshape(diff(e), [-1 if i == j else 1 for j, _ in enumerate(edges)])
    return astype(counts, volume.dtype) / sum(counts) / volume


def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> object:
    """Returns the number of elements in each bin, and the edges of the bins."""
    a = asarray(a)
    edges = histogram_bin_edges(a, bins, range, weights)
    if weights is not None:
        weights = asarray(weights)
        if weights.shape != a.shape:
            raise ShapeError(
                f"weights of numpy.histogram have shape {weights.shape}; a has {a.shape}"
            )
        weights = METHODS["ravel"](weights)
    dtype = default_int() if weights is None else weights.dtype
    flat = METHODS["ravel"](a)
    return _count_in_bins([flat], [edges], weights, bool(density), dtype), edges


def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> Any:
    """Returns the number of points in each bin of several axes, and a list of the axes' edges."""
    if isinstance(sample, list | tuple):
        columns = [METHODS["ravel"](asarray(x)) for x in sample]
    else:
        points = asarray(sample)
        columns = list(unstack(points if points.ndim > 1 else points[:, None], axis=1))
    each = [bins] * len(columns) if isinstance(bins, int | np.integer) else list(bins)
    ranges = [None] * len(columns) if range is None else list(range)
    if not len(each) == len(ranges) == len(columns):
        raise ArgumentError(
            f"numpy.histogramdd got {len(columns)} columns, {len(each)} bins, {len(ranges)} "
            "ranges; it takes as many of each"
        )
    edges = [histogram_bin_edges(x, n, r) for x, n, r in zip(columns, each, ranges, strict=True)]
    known = None if weights is None else asarray(weights)
    dtype = inexact(result_type(*edges) if known is None else known.dtype)
    return _count_in_bins(columns, edges, known, bool(density), dtype), edges


def histogram2d(
    x: Any,
    y: Any,
    bins: Any = 10,
    range: Any = None,
    density: bool | None = None,
    weights: Any = None,
) -> object:
    """Returns the number of points in each bin of two axes, and the edges of both axes."""
    both = bins if isinstance(bins, int | np.integer) or len(bins) == 2 else [bins, bins]
    counts, edges = histogramdd([x, y], both, range, density, weights)
    return counts, *edges


def digitize(x: Any, bins: Any, right: bool = False) -> object:
    """Returns the index of each element's bin; the bins' edges increase or decrease."""
    edges = asarray(bins)
    if is_known(edges):
        steps = np.diff(np.asarray(edges))
        if not ((steps >= 0).all() or (steps <= 0).all()):
            raise ArgumentError("bins of numpy.digitize must rise or fall")
    return _digitize(asarray(x), edges, right=right)


@operation(static=("right",), weak_by="none", title="digitize")
def _digitize(x: Traced, bins: Traced, *, right: bool) -> object:
    if not bins.shape[0]:
        return searchsorted(bins, x)
    side = "left" if right else "right"
    falling = bins.shape[0] - searchsorted(bins[::-1], x, side=side)
    rising = searchsorted(bins, x, side=side)
    return where(bins[-1] >= bins[0], rising, falling)


def bincount(x: Any, weights: Any = None, minlength: int = 0) -> object:
    """Returns the number of occurrences of each integer from 0; reads the largest from ``x``."""
    host = np.asarray(require_concrete("bincount", x, "xp.zeros(n).at[x].add(1) counts n of them"))
    if host.ndim != 1 or host.dtype.kind not in "biu" or (host.size and host.min() < 0):
        raise ArgumentError(
            f"numpy.bincount takes a vector of integers from 0; found {host.dtype.name} of shape "
            f"{host.shape}"
        )
    if operator.index(minlength) < 0:
        raise ArgumentError(f"minlength of numpy.bincount is 0 or more; got {minlength}")
    if weights is not None and dtype_kind(asarray(weights).dtype) == "c":
        raise ArgumentTypeError("weights of numpy.bincount are real; found complex ones")
    length = builtins.max(int(host.max()) + 1 if host.size else 0, minlength)
    dtype = default_int() if weights is None else inexact(asarray(weights).dtype)
    each = asarray(1 if weights is None else weights, dtype=dtype)
    places = asarray(x, dtype=default_int() if host.dtype.kind == "b" else None)
    return zeros(length, dtype=dtype).at[places].add(each)


FUNCTIONS: dict[str, Callable[..., object]] = {
    "bincount": bincount,
    "digitize": digitize,
    "histogram": histogram,
    "histogram2d": histogram2d,
    "histogram_bin_edges": histogram_bin_edges,
    "histogramdd": histogramdd,
    "median": median,
    "nanmedian": nanmedian,
    "nanpercentile": _wrap_quantile("nanpercentile", 100, True),
    "nanquantile": _wrap_quantile("nanquantile", 1, True),
    "percentile": _wrap_quantile("percentile", 100, False),
    "quantile": _wrap_quantile("quantile", 1, False),
}
"""The functions by NumPy's names, with NumPy's parameters."""
