"""Sign bits, `nextafter`, `maximum`, `minimum`, `clip`, and tests for NaN and infinity."""

from __future__ import annotations

import numpy as np

from plugrt.array_api.elementwise.operands import (
    ANY,
    REAL_FLOATING,
    REAL_OR_BOOLEAN,
    binary,
    common_dtype,
    common_shape,
    unary,
)
from plugrt.array_api.sorting import complex_parts, larger, smaller
from plugrt.interface import TensorType
from plugrt.tracing.emit import (
    broadcast_to,
    chlo,
    compare,
    convert,
    emit,
    full,
    hlo,
    select,
)
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import dtype_kind, itemsize_bits
from plugrt.tracing.tracer import Tracer


def sign_bits(x: Tracer) -> Tracer:
    """Returns whether the sign bit of each float is set, also for -0.0 and NaN."""
    integer = np.dtype(f"int{itemsize_bits(x.dtype)}")
    bits = emit(hlo.bitcast_convert, x, result=TensorType(x.shape, integer))
    return compare(bits, full(x.shape, 0, integer), "LT")


def with_sign(x: Tracer, negative: Tracer) -> Tracer:
    """Returns the magnitude of a float, negated where the booleans hold."""
    magnitude = emit(hlo.abs, x)
    return select(negative, emit(hlo.negate, magnitude), magnitude)


@operation
def signbit(x: Tracer, /) -> Tracer:
    """Returns whether the sign bit is set, also of -0.0 and NaN. Real dtypes and bool.

    The result is boolean, of the same shape. Raises `DtypeError` for complex numbers.
    """
    x = unary("signbit", x, REAL_OR_BOOLEAN)
    if dtype_kind(x.dtype) == "f":
        return sign_bits(x)
    if dtype_kind(x.dtype) == "b":
        return full(x.shape, False, _BOOL)
    return compare(x, full(x.shape, 0, x.dtype), "LT")


@operation
def copysign(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns the magnitude of ``x1`` with the sign of ``x2``. Real floating dtypes.

    The arrays broadcast and promote, else `ShapeError` or `DtypeError`.
    """
    a, b = binary("copysign", x1, x2, REAL_FLOATING)
    return with_sign(a, sign_bits(b))


@operation
def nextafter(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns the next float after ``x1`` towards ``x2``. Real floating dtypes.

    The arrays broadcast and promote, else `ShapeError` or `DtypeError`.
    """
    return emit(chlo.next_after, *binary("nextafter", x1, x2, REAL_FLOATING))


@operation
def maximum(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns the larger of both, NaN if either is NaN; complex: real part first.

    Any dtypes. The arrays broadcast and promote, else `ShapeError` or `DtypeError`.
    """
    return larger(*binary("maximum", x1, x2))


@operation
def minimum(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns the smaller of both, NaN if either is NaN; complex: real part first.

    Any dtypes. The arrays broadcast and promote, else `ShapeError` or `DtypeError`.
    """
    return smaller(*binary("minimum", x1, x2))


@operation
def clip(x: Tracer, /, min: Tracer | None = None, max: Tracer | None = None) -> Tracer:
    """Returns ``x`` limited to ``min`` and ``max``, which broadcast with it. Real dtypes.

    None is no bound; where ``min > max`` the result is ``max``; NaN in any of the three gives NaN.
    The result has the common dtype of all three. Raises `ShapeError` if they do not broadcast,
    `DtypeError` for complex numbers.

    >>> xp.clip(xp.asarray([-1, 0.5, 2]), 0, 1)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    given = [(n, t) for n, t in (("x", x), ("min", min), ("max", max)) if t is not None]
    names, operands = zip(*given, strict=True)
    dtype = common_dtype("clip", operands, REAL_OR_BOOLEAN, names)
    shape = common_shape("clip", operands, names)
    value, *_ = placed = [broadcast_to(convert(t, dtype), shape) for t in operands]
    bounds = iter(placed[1:])
    if min is not None:
        value = emit(hlo.maximum, value, next(bounds))
    if max is not None:
        value = emit(hlo.minimum, value, next(bounds))
    return value


@operation
def isfinite(x: Tracer, /) -> Tracer:
    """Returns whether ``x`` is neither NaN nor infinite, nor any part of it.

    Any dtype; the result is boolean, of the same shape. Raises `NotAnArray` for any other object
    than an array or number.
    """
    x = unary("isfinite", x, ANY)
    if dtype_kind(x.dtype) == "c":
        return emit(hlo.and_, *[emit(hlo.is_finite, p) for p in complex_parts(x)])
    return emit(hlo.is_finite, x) if dtype_kind(x.dtype) == "f" else full(x.shape, True, _BOOL)


@operation
def isinf(x: Tracer, /) -> Tracer:
    """Returns whether ``x``, or a part of it, is infinite.

    Any dtype; the result is boolean, of the same shape. Raises `NotAnArray` for any other object
    than an array or number.
    """
    x = unary("isinf", x, ANY)
    return is_infinite(x) if dtype_kind(x.dtype) in "fc" else full(x.shape, False, _BOOL)


@operation
def isnan(x: Tracer, /) -> Tracer:
    """Returns whether ``x``, or a part of it, is NaN.

    Any dtype; the result is boolean, of the same shape. Raises `NotAnArray` for any other object
    than an array or number.
    """
    x = unary("isnan", x, ANY)
    return compare(x, x, "NE")  # also for integers: the result is on their devices, as in JAX


_BOOL = np.dtype(np.bool_)


def is_infinite(x: Tracer) -> Tracer:
    """Returns whether a float, or a part of a complex number, is infinite."""
    if dtype_kind(x.dtype) == "c":
        result: Tracer = emit(hlo.or_, *[is_infinite(p) for p in complex_parts(x)])
        return result
    # In formats without infinities the constant becomes NaN, which equals nothing: False.
    return compare(emit(hlo.abs, x), full(x.shape, np.inf, x.dtype), "EQ")
