"""Rounding, element by element."""

from __future__ import annotations

from plugrt.array_api.operands import REAL_OR_BOOLEAN, SIGNED, unary
from plugrt.tracing.emit import compare, emit, full, hlo, select
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import kind_of
from plugrt.tracing.tracer import Tracer


@operation
def ceil(x: Tracer, /) -> Tracer:
    """Returns the smallest whole number that is not less than ``x``. Real dtypes and bool."""
    x = unary("ceil", x, REAL_OR_BOOLEAN)
    return emit(hlo.ceil, x) if kind_of(x.dtype) == "f" else x


@operation
def floor(x: Tracer, /) -> Tracer:
    """Returns the largest whole number that is not greater than ``x``. Real dtypes and bool."""
    x = unary("floor", x, REAL_OR_BOOLEAN)
    return emit(hlo.floor, x) if kind_of(x.dtype) == "f" else x


@operation
def trunc(x: Tracer, /) -> Tracer:
    """Returns ``x`` without its fraction. Real dtypes and bool."""
    x = unary("trunc", x, REAL_OR_BOOLEAN)
    if kind_of(x.dtype) != "f":
        return x
    below = compare(x, full(x.shape, 0, x.dtype), "LT")
    return select(below, emit(hlo.ceil, x), emit(hlo.floor, x))


@operation
def round(x: Tracer, /) -> Tracer:
    """Returns the nearest whole number, the even one of two; for complex, of each part."""
    x = unary("round", x, SIGNED)
    kind = kind_of(x.dtype)
    if kind == "c":
        parts = [emit(hlo.round_nearest_even, emit(part, x)) for part in (hlo.real, hlo.imag)]
        return emit(hlo.complex, *parts)
    return emit(hlo.round_nearest_even, x) if kind == "f" else x
