"""Methods of arrays that reduce or accumulate along axes, with the arguments of NumPy's."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from plugrt.array_api import (
    data_types,
    manipulation,
    masked_reductions,
    searching,
    statistics,
    utility,
)
from plugrt.errors import Unimplemented

Axis = int | Sequence[int] | None
Method = Callable[..., Any]


def refuse_out(name: str, out: object) -> None:
    """Raises `Unimplemented` for an array to write into: arrays do not change.

    NumPy's functions (``np.mean(x)``) pass ``out=None`` to the methods, as they do to JAX's.
    """
    if out is not None:
        raise Unimplemented(
            f"{name} cannot write into out: arrays do not change; use what it returns"
        )


def _reduce(
    name: str,
    function: Method,
    x: object,
    out: object,
    *,
    where: object,
    initial: object = None,
    **options: object,
) -> object:
    refuse_out(name, out)
    if initial is None and where is None:
        return function(x, **options)
    return masked_reductions.reduce(name, x, initial=initial, where=where, **options)


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
        options = {"axis": axis, "dtype": dtype, "keepdims": keepdims}
        return _reduce(name, function, self, out, initial=initial, where=where, **options)

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
        options = {"axis": axis, "keepdims": keepdims}
        return _reduce(name, function, self, out, initial=initial, where=where, **options)

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
        return _reduce(name, function, self, out, where=where, axis=axis, keepdims=keepdims)

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

    With ``where`` that of the elements for which the booleans hold.
    """
    refuse_out("mean", out)
    x = self if dtype is None else data_types.astype(self, dtype)
    if where is None:
        return statistics.mean(x, axis=axis, keepdims=keepdims)
    return masked_reductions.mean(x, where=where, axis=axis, keepdims=keepdims)


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
    "std": _deviation_method("std", statistics.std, masked_reductions.deviation),
    "var": _deviation_method("var", statistics.var, masked_reductions.variance),
    "cumsum": _make_cumulative_method("cumulative_sum", statistics.cumulative_sum),
    "cumprod": _make_cumulative_method("cumulative_prod", statistics.cumulative_prod),
}
