"""Building blocks of reductions: `fold`, `accumulate`, identities and accumulation dtypes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from plugrt.errors import Unimplemented
from plugrt.tracing.argument_checks import reduced_shape
from plugrt.tracing.emit import (
    active_trace,
    constant,
    convert,
    emit,
    hlo,
    reduce,
    region,
    reshape,
    wrap_one,
)
from plugrt.tracing.promotion import default_int, dtype_kind, itemsize_bits
from plugrt.tracing.tracer import Tracer

Dtype = np.dtype[np.generic]


def refuse_out(name: str, out: object) -> None:
    """Raises `Unimplemented` unless ``out`` is None: functions return new arrays.

    NumPy's functions (``np.mean(x)``) pass ``out=None`` to methods, also to JAX's, and xarray
    passes it on.
    """
    if out is not None:
        raise Unimplemented(
            f"{name} cannot write into out: arrays do not change; use what it returns"
        )


Combine: TypeAlias = Callable[[Tracer, Tracer], Tracer]


def binary_combiner(builder: Callable[..., object]) -> Combine:
    """Returns a binary builder of StableHLO as a function of two tracers."""
    return lambda a, b: emit(builder, a, b)


def fold(
    combine: Combine, x: Tracer, initial: object, axes: tuple[int, ...], *, keepdims: bool
) -> Tracer:
    """Returns ``x`` reduced over ``axes`` by ``combine``, whose identity is ``initial``."""
    shape = reduced_shape(x.shape, axes, keepdims=keepdims)
    if not axes:
        return reshape(x, shape)
    (result,) = reduce([x], [constant(initial, x.dtype)], axes, lambda a, b: [combine(a, b)])
    return reshape(result, shape)


def accumulate(combine: Combine, x: Tracer, initial: object, axis: int) -> Tracer:
    """Returns the running reduction of ``x`` along ``axis``, of the shape of ``x``.

    Reduces one window for each element, back to the first: XLA rewrites that to a tree of blocks on
    every platform (3 ms for a million elements on two cores, as fast as a hand-made scan).
    """
    if x.size == 0:
        return x
    trace = active_trace()
    window, padding = [1] * x.ndim, np.zeros((x.ndim, 2), np.int64)
    window[axis] = x.shape[axis]
    padding[axis, 0] = x.shape[axis] - 1
    op = hlo.ReduceWindowOp(
        [trace.mlir_type(x.shape, x.dtype)],
        [x.value],
        [constant(initial, x.dtype).value],
        window,
        padding=padding,
        loc=trace.location(),
    )
    scalar = trace.mlir_type((), x.dtype)
    region(op.regions[0], [scalar, scalar], lambda a, b: [combine(a, b)])
    return wrap_one(op)


def lowest(dtype: Dtype) -> Any:
    """Returns the identity of maximum: minus infinity, or the dtype's least number."""
    return _extreme(dtype, highest=False)


def highest(dtype: Dtype) -> Any:
    """Returns the identity of minimum: infinity, or the dtype's greatest number."""
    return _extreme(dtype, highest=True)


def _extreme(dtype: Dtype, *, highest: bool) -> object:
    kind = dtype_kind(dtype)
    if kind == "b":
        return highest
    if kind == "c":
        return np.asarray(complex(*[np.inf if highest else -np.inf] * 2)).astype(dtype)
    if kind == "f":
        infinite = np.asarray(np.inf if highest else -np.inf).astype(dtype)
        if np.isinf(infinite.astype(np.float64)):
            return infinite  # some 8-bit floats have no infinities
    info: Any = ml_dtypes.finfo if kind == "f" else ml_dtypes.iinfo
    limits = info(dtype)
    return np.asarray(limits.max if highest else limits.min).astype(dtype)


def sum_dtype(dtype: Dtype) -> Dtype:
    """Returns the dtype of sums and products of a dtype, by the standard.

    Integers narrower than the default integer get its width, booleans become the default integer,
    other dtypes stay.
    """
    kind = dtype_kind(dtype)
    if kind == "b":
        return default_int()
    if kind in "iu" and itemsize_bits(dtype) < itemsize_bits(default_int()):
        name = default_int().name
        return np.dtype(name if kind == "i" else f"u{name}")
    return dtype


def widen_for_sum(x: Tracer) -> Tracer:
    """Returns ``x`` in the dtype of accumulators: float32 for narrower floats."""
    if dtype_kind(x.dtype) == "f" and x.dtype.itemsize < 4:
        return convert(x, np.float32)
    return x


def count_reduced(shape: Sequence[int], axes: tuple[int, ...]) -> int:
    """Returns the number of elements that a reduction over ``axes`` combines to one."""
    count = 1
    for axis in axes:
        count *= shape[axis]
    return count
