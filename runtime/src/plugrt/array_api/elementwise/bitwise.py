"""Elementwise bitwise operations and shifts."""

from __future__ import annotations

from plugrt.array_api.elementwise.operands import INTEGER, INTEGER_OR_BOOLEAN, binary, unary
from plugrt.tracing.emit import emit, hlo
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import dtype_kind
from plugrt.tracing.tracer import Tracer


@operation
def bitwise_and(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns ``x1 & x2``. Integers and booleans.

    The arrays broadcast and promote, else `ShapeError` or `DtypeError`, as for floats.
    """
    return emit(hlo.and_, *binary("bitwise_and", x1, x2, INTEGER_OR_BOOLEAN))


@operation
def bitwise_or(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns ``x1 | x2``. Integers and booleans.

    The arrays broadcast and promote, else `ShapeError` or `DtypeError`, as for floats.
    """
    return emit(hlo.or_, *binary("bitwise_or", x1, x2, INTEGER_OR_BOOLEAN))


@operation
def bitwise_xor(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns ``x1 ^ x2``. Integers and booleans.

    The arrays broadcast and promote, else `ShapeError` or `DtypeError`, as for floats.
    """
    return emit(hlo.xor, *binary("bitwise_xor", x1, x2, INTEGER_OR_BOOLEAN))


@operation
def bitwise_invert(x: Tracer, /) -> Tracer:
    """Returns ``~x``. Integers and booleans.

    Keeps the shape and dtype. Raises `DtypeError` for floats.
    """
    return emit(hlo.not_, unary("bitwise_invert", x, INTEGER_OR_BOOLEAN))


@operation
def bitwise_left_shift(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns ``x1 << x2``. Integers; shifts by as many bits as there are, or more, give 0.

    The arrays broadcast and promote, else `ShapeError` or `DtypeError`, as for floats.
    """
    return emit(hlo.shift_left, *binary("bitwise_left_shift", x1, x2, INTEGER))


@operation
def bitwise_right_shift(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns ``x1 >> x2``. Integers; signed ones keep their sign, as in Python.

    The arrays broadcast and promote, else `ShapeError` or `DtypeError`, as for floats.
    """
    a, b = binary("bitwise_right_shift", x1, x2, INTEGER)
    signed = dtype_kind(a.dtype) == "i"
    return emit(hlo.shift_right_arithmetic if signed else hlo.shift_right_logical, a, b)
