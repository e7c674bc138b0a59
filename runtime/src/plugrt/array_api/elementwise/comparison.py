"""Elementwise comparisons (`equal`, `less`…) and logical operations (`logical_and`…)."""

from __future__ import annotations

from plugrt.array_api.elementwise.operands import ANY, BOOLEAN, INTEGER, binary, unary
from plugrt.array_api.sorting import compare_ordered
from plugrt.tracing.emit import compare, convert, emit, hlo
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import dtype_kind, itemsize_bits, promote_dtypes
from plugrt.tracing.tracer import Tracer


def _sides(function: str, x1: Tracer, x2: Tracer) -> tuple[Tracer, Tracer]:
    # A Python integer may be out of range of the array's dtype, and would wrap: uint8 < 300.
    if {dtype_kind(x1.dtype), dtype_kind(x2.dtype)} <= set(INTEGER) and x1.weak != x2.weak:
        array, scalar = (x2, x1) if x1.weak else (x1, x2)
        # Integers of 4 bits have no implicit promotion, and the scalar's dtype can represent them.
        narrow = itemsize_bits(array.dtype) < 8
        dtype = scalar.dtype if narrow else promote_dtypes(array.dtype, scalar.dtype)
        if dtype_kind(dtype) in INTEGER:
            x1, x2 = convert(x1, dtype), convert(x2, dtype)
    return binary(function, x1, x2, ANY)


@operation(keys="all")
def equal(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns whether ``x1 == x2``; NaN equals nothing. Any dtypes that have a common one.

    The result is boolean; the arrays broadcast and promote, else `ShapeError` or `DtypeError`.
    """
    return compare(*_sides("equal", x1, x2), "EQ")


@operation(keys="any")
def not_equal(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns whether ``x1 != x2``; NaN differs from all. Any dtypes that have a common one.

    The result is boolean; the arrays broadcast and promote, else `ShapeError` or `DtypeError`.
    """
    return compare(*_sides("not_equal", x1, x2), "NE")


@operation
def less(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns whether ``x1 < x2``; of complex by their parts, real part first.

    The result is boolean; the arrays broadcast and promote, else `ShapeError` or `DtypeError`.
    """
    return compare_ordered(*_sides("less", x1, x2), "LT")


@operation
def less_equal(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns whether ``x1 <= x2``; of complex by their parts, real part first.

    The result is boolean; the arrays broadcast and promote, else `ShapeError` or `DtypeError`.
    """
    return compare_ordered(*_sides("less_equal", x1, x2), "LE")


@operation
def greater(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns whether ``x1 > x2``; of complex by their parts, real part first.

    The result is boolean; the arrays broadcast and promote, else `ShapeError` or `DtypeError`.
    """
    return compare_ordered(*_sides("greater", x1, x2), "GT")


@operation
def greater_equal(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns whether ``x1 >= x2``; of complex by their parts, real part first.

    The result is boolean; the arrays broadcast and promote, else `ShapeError` or `DtypeError`.
    """
    return compare_ordered(*_sides("greater_equal", x1, x2), "GE")


@operation
def logical_and(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns whether both are true, which means not zero.

    Any dtypes; the result is boolean. Raises `ShapeError` where the shapes do not broadcast.
    """
    return emit(hlo.and_, *binary("logical_and", x1, x2, BOOLEAN))


@operation
def logical_or(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns whether one or both are true, which means not zero.

    Any dtypes; the result is boolean. Raises `ShapeError` where the shapes do not broadcast.
    """
    return emit(hlo.or_, *binary("logical_or", x1, x2, BOOLEAN))


@operation
def logical_xor(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns whether exactly one is true, which means not zero.

    Any dtypes; the result is boolean. Raises `ShapeError` where the shapes do not broadcast.
    """
    return emit(hlo.xor, *binary("logical_xor", x1, x2, BOOLEAN))


@operation
def logical_not(x: Tracer, /) -> Tracer:
    """Returns whether ``x`` is false or zero.

    Any dtype; the result is boolean, of the same shape. Raises `NotAnArray` for any other object
    than an array or number.
    """
    return emit(hlo.not_, unary("logical_not", x, BOOLEAN))
