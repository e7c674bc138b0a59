"""Reductions of some elements, from an initial value: NumPy's ``where`` and ``initial``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plugrt.array_api import statistics, utility
from plugrt.array_api.array_conversion import asarray
from plugrt.array_api.data_types import astype
from plugrt.array_api.elementwise.arithmetic import abs, square
from plugrt.array_api.elementwise.exponential import sqrt
from plugrt.array_api.elementwise.float_properties import maximum, minimum
from plugrt.array_api.fold import count_reduced
from plugrt.array_api.manipulation import broadcast_to
from plugrt.array_api.searching import where as choose
from plugrt.errors import ArgumentError
from plugrt.tracing.argument_checks import normalize_axes
from plugrt.tracing.promotion import default_int

Combine = Callable[[Any, Any], Any]
_REDUCTIONS: dict[str, tuple[Callable[..., object], object, Combine | None]] = {
    "sum": (statistics.sum, 0, lambda a, b: a + b),
    "prod": (statistics.prod, 1, lambda a, b: a * b),
    "max": (statistics.max, None, maximum),
    "min": (statistics.min, None, minimum),
    "any": (utility.any, False, None),
    "all": (utility.all, True, None),
}
"""The function, its identity, and what joins an initial value."""


def reduce(name: str, x: Any, *, where: Any, initial: Any = None, **options: Any) -> Any:
    """Returns the reduction ``name`` of the elements of ``x`` for which the booleans hold.

    ``where`` broadcasts with ``x``; None is all elements. With ``initial`` the reduction begins
    with that value. Raises `ArgumentError` for "max" and "min" with ``where`` and no ``initial``,
    `ShapeError` where the shapes do not broadcast. As in NumPy.
    """
    function, identity, combine = _REDUCTIONS[name]
    if identity is None and initial is None:
        raise ArgumentError(
            f"{name} has no identity: with where it takes initial, the result where no element is "
            "chosen"
        )
    start = initial if identity is None else identity
    if where is not None:
        x = choose(_read_mask(name, where), x, start)
    if initial is None or combine is None:
        return function(x, **options)
    axes = normalize_axes(name, options.get("axis"), x.ndim)
    if identity is None and not count_reduced(x.shape, axes):
        return astype(statistics.sum(x, **options), x.dtype) + initial  # which is initial alone
    return combine(function(x, **options), initial)


def mean(x: Any, *, where: Any, axis: Any, keepdims: bool) -> Any:
    """Returns the mean of the elements for which ``where`` holds: NaN where there are none."""
    mask = broadcast_to(_read_mask("mean", where), x.shape)
    count = statistics.sum(astype(mask, default_int()), axis=axis, keepdims=keepdims)
    return statistics.sum(choose(mask, x, 0), axis=axis, keepdims=keepdims) / count


def variance(x: Any, *, where: Any, axis: Any, keepdims: bool, correction: float) -> Any:
    """Returns the variance of the elements for which ``where`` holds; see `statistics.var`."""
    mask = broadcast_to(_read_mask("var", where), x.shape)
    deviations = square(abs(x - mean(x, where=mask, axis=axis, keepdims=True)))
    count = statistics.sum(astype(mask, default_int()), axis=axis, keepdims=keepdims)
    total = statistics.sum(choose(mask, deviations, 0), axis=axis, keepdims=keepdims)
    return total / (count - correction)


def deviation(x: Any, **options: Any) -> Any:
    """Returns the standard deviation of some elements: the root of their `variance`."""
    return sqrt(variance(x, **options))


def _read_mask(name: str, where: Any) -> object:
    mask = asarray(where)
    if mask.dtype.kind != "b":
        raise ArgumentError(f"where of {name} takes booleans; found dtype {mask.dtype.name}")
    return mask
