"""`all`, `any` and `diff`."""

from __future__ import annotations

import numpy as np

from plugrt.array_api.elementwise.operands import ANY, common_dtype
from plugrt.array_api.fold import binary_combiner, fold, refuse_out
from plugrt.array_api.manipulation import slice_along
from plugrt.array_api.searching import is_nonzero
from plugrt.errors import ArgumentError, ShapeError
from plugrt.tracing.argument_checks import normalize_axes, normalize_axis
from plugrt.tracing.emit import concatenate, convert, emit, hlo
from plugrt.tracing.operation import operation
from plugrt.tracing.tracer import Tracer
from plugrt.typing import Axes


@operation(static=("axis", "keepdims"))
def all(x: Tracer, /, axis: Axes = None, *, keepdims: bool = False, out: None = None) -> Tracer:
    """Returns whether all elements over ``axis`` are true: not zero. True if there are none.

    Any dtype; the result is boolean, without the axes unless ``keepdims``. ``out`` is None
    alone, which NumPy's functions pass. Raises `AxisError`.
    """
    refuse_out("all", out)
    axes = normalize_axes("all", axis, x.ndim)
    return fold(binary_combiner(hlo.and_), is_nonzero(x), True, axes, keepdims=keepdims)


@operation(static=("axis", "keepdims"))
def any(x: Tracer, /, axis: Axes = None, *, keepdims: bool = False, out: None = None) -> Tracer:
    """Returns whether an element over ``axis`` is true: not zero. False if there are none.

    Any dtype; the result is boolean, without the axes unless ``keepdims``. ``out`` is None
    alone, which NumPy's functions pass. Raises `AxisError`.
    """
    refuse_out("any", out)
    axes = normalize_axes("any", axis, x.ndim)
    return fold(binary_combiner(hlo.or_), is_nonzero(x), False, axes, keepdims=keepdims)


@operation(static=("axis", "n"))
def diff(
    x: Tracer,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: Tracer | None = None,
    append: Tracer | None = None,
) -> Tracer:
    """Returns the ``n``-th differences of neighbours along ``axis``; for bool, whether they differ.

    ``prepend`` and ``append`` are joined to ``x`` along ``axis`` first. Each difference shortens
    the axis by one, down to 0. Any dtype. Raises `ShapeError` if the joined arrays do not match,
    `ArgumentError` for an ``n`` that is no integer from 0, `AxisError`.

    >>> xp.diff(xp.asarray([1, 4, 9, 16]))
    Array([3, 5, 7], dtype=int32)
    """
    along = normalize_axis("diff", axis, x.ndim)
    if not isinstance(n, int) or n < 0:
        raise ArgumentError(f"n of diff is {n!r}; it takes a whole number from 0")
    named = [("prepend", prepend), ("x", x), ("append", append)]
    parts = [(name, part) for name, part in named if part is not None]
    dtype = common_dtype("diff", tuple(p for _, p in parts), ANY, tuple(m for m, _ in parts))
    for name, part in parts:
        if part.ndim != x.ndim or part.shape[:along] + part.shape[along + 1 :] != (
            x.shape[:along] + x.shape[along + 1 :]
        ):
            raise ShapeError(
                f"diff along axis {along} got x of shape {x.shape} and {name} of shape "
                f"{part.shape}; they must agree but for that axis"
            )
    result = concatenate([convert(part, dtype) for _, part in parts], along)
    for _ in range(min(n, result.shape[along])):
        size = result.shape[along]
        later, earlier = (
            slice_along(result, along, 1, size),
            slice_along(result, along, 0, size - 1),
        )
        change = hlo.xor if result.dtype == np.bool_ else hlo.subtract
        result = emit(change, later, earlier)
    return result


__all__ = ["all", "any", "diff"]
