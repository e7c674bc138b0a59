"""Comparisons, and logic on booleans, element by element."""

from __future__ import annotations

from plugrt.array_api.operands import ANY, BOOLEAN, REAL, binary, unary
from plugrt.tracing.emit import compare, emit, hlo
from plugrt.tracing.operation import operation
from plugrt.tracing.tracer import Tracer


@operation
def equal(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns whether ``x1 == x2``; NaN equals nothing. Any dtypes that have a common one."""
    return compare(*binary("equal", x1, x2, ANY), "EQ")


@operation
def not_equal(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns whether ``x1 != x2``; NaN differs from all. Any dtypes that have a common one."""
    return compare(*binary("not_equal", x1, x2, ANY), "NE")


@operation
def less(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns whether ``x1 < x2``. Real dtypes."""
    return compare(*binary("less", x1, x2, REAL), "LT")


@operation
def less_equal(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns whether ``x1 <= x2``. Real dtypes."""
    return compare(*binary("less_equal", x1, x2, REAL), "LE")


@operation
def greater(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns whether ``x1 > x2``. Real dtypes."""
    return compare(*binary("greater", x1, x2, REAL), "GT")


@operation
def greater_equal(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns whether ``x1 >= x2``. Real dtypes."""
    return compare(*binary("greater_equal", x1, x2, REAL), "GE")


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
