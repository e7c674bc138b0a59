"""Methods of arrays that reduce or accumulate along axes, with NumPy's arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plugrt.array_api import (
    data_types,
    manipulation,
    searching,
    statistics,
    utility,
)
from plugrt.array_api.array_conversion import asarray
from plugrt.array_api.data_types import astype, iinfo
from plugrt.array_api.elementwise.arithmetic import abs, square
from plugrt.array_api.elementwise.exponential import sqrt
from plugrt.array_api.elementwise.float_properties import maximum, minimum
from plugrt.array_api.fold import count_reduced, refuse_out
from plugrt.array_api.manipulation import broadcast_to
from plugrt.array_api.searching import where as choose
from plugrt.errors import ArgumentError, IntegerOverflow
from plugrt.tracing.argument_checks import normalize_axes
from plugrt.tracing.promotion import default_int, dtype_kind

Combine = Callable[[Any, Any], Any]
_REDUCTIONS: dict[str, tuple[Callable[..., object], object, Combine | None]] = {
    "sum": (statistics.sum, 0, lambda a, b: a + b),
    "prod": (statistics.prod, 1, lambda a, b: a * b),
    "max": (statistics.max, None, maximum),
    "min": (statistics.min, None, minimum),
    "any": (utility.any, False, None),
    "all": (utility.all, True, None),
}
"""The function, its identity, and the function that combines its result with ``initial``."""


def reduce_some(name: str, x: Any, *, where: Any, initial: Any = None, **options: Any) -> Any:
    """Returns the reduction ``name`` of the elements of ``x`` where ``where`` is true.

    ``where`` broadcasts with ``x``; None is all elements. With ``initial`` the reduction begins
    with that value. Raises `ArgumentError` for "max" and "min" with ``where`` and no ``initial``,
    `ShapeError` if the shapes do not broadcast, `IntegerOverflow` if ``initial`` does not fit the
    dtype. As in NumPy.
    """
    function, identity, combine = _REDUCTIONS[name]
    if identity is None and initial is None:
        raise ArgumentError(
            f"{name} has no identity: with where= pass initial=, the result where no element is "
            "selected"
        )
    if identity is None:
        _require_fit(name, initial, x.dtype)
    start = initial if identity is None else identity
    if where is not None:
        x = choose(_read_mask(name, where), x, start)
    if initial is None or combine is None:
        return function(x, **options)
    axes = normalize_axes(name, options.get("axis"), x.ndim)
    if identity is None and not count_reduced(x.shape, axes):
        return astype(statistics.sum(x, **options), x.dtype) + initial  # equal to initial
    found: Any = function(x, **options)
    _require_fit(name, initial, found.dtype)
    return combine(found, initial)


def _require_fit(name: str, initial: Any, dtype: np.dtype[Any]) -> None:
    if type(initial) is int and dtype_kind(dtype) in "iu":
        limits = iinfo(dtype)
        if not limits.min <= initial <= limits.max:
            raise IntegerOverflow(
                f"initial of {name} is {initial}, which does not fit {dtype.name}; convert the "
                "array with astype"
            )


def mean_of_some(x: Any, *, where: Any, axis: Any, keepdims: bool) -> Any:
    """Returns the mean of the elements where ``where`` is true: NaN if there are none."""
    mask = broadcast_to(_read_mask("mean", where), x.shape)
    count = statistics.sum(astype(mask, default_int()), axis=axis, keepdims=keepdims)
    return statistics.sum(choose(mask, x, 0), axis=axis, keepdims=keepdims) / count


def variance_of_some(x: Any, *, where: Any, axis: Any, keepdims: bool, correction: float) -> Any:
    """Returns the variance of the elements where ``where`` is true; see `statistics.var`."""
    mask = broadcast_to(_read_mask("var", where), x.shape)
    deviations = square(abs(x - mean_of_some(x, where=mask, axis=axis, keepdims=True)))
    count = statistics.sum(astype(mask, default_int()), axis=axis, keepdims=keepdims)
    total = statistics.sum(choose(mask, deviations, 0), axis=axis, keepdims=keepdims)
    return total / (count - correction)


def deviation_of_some(x: Any, **options: Any) -> Any:
    """Returns the standard deviation of some elements: the root of their `variance_of_some`."""
    return sqrt(variance_of_some(x, **options))


def _read_mask(name: str, where: Any) -> object:
    mask = asarray(where)
    if mask.dtype.kind != "b":
        raise ArgumentError(f"where of {name} takes booleans; found dtype {mask.dtype.name}")
    return mask


Axis = int | Sequence[int] | None
Method = Callable[..., Any]


def _sum_method(name: str, function: Method) -> Method:
    def method(
        self: object,
        axis: Axis = None,
        dtype: object = None,
        out: None = None,
        keepdims: bool = False,
        initial: object = None,
        where: object = None,
    ) -> Any:
        if where is None and initial is None and out is None:
            return function(self, axis=axis, dtype=dtype, keepdims=keepdims)
        refuse_out(name, out)
        options = {"axis": axis, "dtype": dtype, "keepdims": keepdims}
        return reduce_some(name, self, initial=initial, where=where, **options)

    return _describe(method, name, "from ``initial`` on, of elements where ``where`` holds")


def _extremum_method(name: str, function: Method) -> Method:
    def method(
        self: object,
        axis: Axis = None,
        out: None = None,
        keepdims: bool = False,
        initial: object = None,
        where: object = None,
    ) -> Any:
        if where is None and initial is None and out is None:
            return function(self, axis=axis, keepdims=keepdims)
        refuse_out(name, out)
        options = {"axis": axis, "keepdims": keepdims}
        return reduce_some(name, self, initial=initial, where=where, **options)

    return _describe(method, name, "from ``initial`` on, of elements where ``where`` holds")


def _boolean_method(name: str, function: Method) -> Method:
    def method(
        self: object,
        axis: Axis = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: object = None,
    ) -> Any:
        if where is None and out is None:
            return function(self, axis=axis, keepdims=keepdims)
        refuse_out(name, out)
        return reduce_some(name, self, where=where, axis=axis, keepdims=keepdims)

    return _describe(method, name, "of elements where ``where`` holds")


def _position_method(name: str, function: Method) -> Method:
    def method(self: object, axis: Axis = None, out: None = None, keepdims: bool = False) -> Any:
        refuse_out(name, out)
        return function(self, axis=axis, keepdims=keepdims)

    return _describe(method, name)


def mean(
    self: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: Any = None,
) -> Any:
    """Returns ``array_api.mean`` over ``axis``, computed in ``dtype``; None means all axes.

    ``where`` chooses elements by booleans.
    """
    refuse_out("mean", out)
    x = self if dtype is None else data_types.astype(self, dtype)
    if where is None:
        return statistics.mean(x, axis=axis, keepdims=keepdims)
    return mean_of_some(x, where=where, axis=axis, keepdims=keepdims)


def _deviation_method(name: str, function: Method, masked: Method) -> Method:
    def method(
        self: Any,
        axis: Axis = None,
        dtype: Any = None,
        out: None = None,
        ddof: float = 0,
        keepdims: bool = False,
        *,
        where: Any = None,
        correction: float | None = None,
    ) -> Any:
        refuse_out(name, out)
        x = self if dtype is None else data_types.astype(self, dtype)
        less = ddof if correction is None else correction
        options = {"axis": axis, "keepdims": keepdims, "correction": less}
        return function(x, **options) if where is None else masked(x, where=where, **options)

    return _describe(method, name, "of elements where ``where`` holds")


def _make_cumulative_method(name: str, function: Method) -> Method:
    def method(self: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
        refuse_out(name, out)
        if axis is None:
            return function(manipulation.reshape(self, (math.prod(self.shape),)), dtype=dtype)
        return function(self, axis=axis, dtype=dtype)

    method.__doc__ = f"Returns ``array_api.{name}`` along ``axis``; None means flattened."
    return method


def _describe(method: Method, name: str, more: str = "") -> Method:
    method.__doc__ = (
        f"Returns ``array_api.{name}`` over ``axis``{more and f', {more}'}; None is all."
    )
    return method


REDUCTION_METHODS: dict[str, Method] = {
    "sum": _sum_method("sum", statistics.sum),
    "prod": _sum_method("prod", statistics.prod),
    "max": _extremum_method("max", statistics.max),
    "min": _extremum_method("min", statistics.min),
    "any": _boolean_method("any", utility.any),
    "all": _boolean_method("all", utility.all),
    "argmax": _position_method("argmax", searching.argmax),
    "argmin": _position_method("argmin", searching.argmin),
    "mean": mean,
    "std": _deviation_method("std", statistics.std, deviation_of_some),
    "var": _deviation_method("var", statistics.var, variance_of_some),
    "cumsum": _make_cumulative_method("cumulative_sum", statistics.cumulative_sum),
    "cumprod": _make_cumulative_method("cumulative_prod", statistics.cumulative_prod),
}
