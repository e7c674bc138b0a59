"""Comparisons, and logic on booleans, element by element."""

from __future__ import annotations

from plugrt.array_api.operands import ANY, BOOLEAN, INTEGER, REAL, binary, unary
from plugrt.tracing.emit import compare, convert, emit, hlo
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import kind_of, promote_dtypes
from plugrt.tracing.tracer import Tracer


def _sides(function: str, x1: Tracer, x2: Tracer, kinds: str) -> tuple[Tracer, Tracer]:
    # A Python integer may be beyond the array's dtype, where it would wrap around: uint8 < 300.
    if {kind_of(x1.dtype), kind_of(x2.dtype)} <= set(INTEGER) and x1.weak != x2.weak:
        dtype = promote_dtypes(x1.dtype, x2.dtype)
        if kind_of(dtype) in INTEGER:
            x1, x2 = convert(x1, dtype), convert(x2, dtype)
    return binary(function, x1, x2, kinds)


@operation
def equal(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns whether ``x1 == x2``; NaN equals nothing. Any dtypes that have a common one."""
    return compare(*_sides("equal", x1, x2, ANY), "EQ")


@operation
def not_equal(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns whether ``x1 != x2``; NaN differs from all. Any dtypes that have a common one."""
    return compare(*_sides("not_equal", x1, x2, ANY), "NE")


@operation
def less(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns whether ``x1 < x2``. Real dtypes."""
    return compare(*_sides("less", x1, x2, REAL), "LT")


@operation
def less_equal(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns whether ``x1 <= x2``. Real dtypes."""
    return compare(*_sides("less_equal", x1, x2, REAL), "LE")


@operation
def greater(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns whether ``x1 > x2``. Real dtypes."""
    return compare(*_sides("greater", x1, x2, REAL), "GT")


@operation
def greater_equal(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns whether ``x1 >= x2``. Real dtypes."""
    return compare(*_sides("greater_equal", x1, x2, REAL), "GE")


@operation
def logical_and(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns whether both hold. Booleans."""
    return emit(hlo.and_, *binary("logical_and", x1, x2, BOOLEAN))


@operation
def logical_or(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns whether one or both hold. Booleans."""
    return emit(hlo.or_, *binary("logical_or", x1, x2, BOOLEAN))


@operation
def logical_xor(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns whether just one holds. Booleans."""
    return emit(hlo.xor, *binary("logical_xor", x1, x2, BOOLEAN))


@operation
def logical_not(x: Tracer, /) -> Tracer:
    """Returns whether ``x`` does not hold. Booleans."""
    return emit(hlo.not_, unary("logical_not", x, BOOLEAN))
