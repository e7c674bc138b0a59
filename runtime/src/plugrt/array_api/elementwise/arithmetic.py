"""Elementwise arithmetic: `add`, `divide`, `floor_divide`, `remainder`, `sign`…"""

from __future__ import annotations

import numpy as np

from plugrt.array_api.elementwise.float_properties import is_infinite, sign_bits, with_sign
from plugrt.array_api.elementwise.operands import (
    ANY,
    FLOATING,
    NUMERIC,
    REAL,
    SIGNED,
    binary,
    unary,
)
from plugrt.tracing.emit import (
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

# Workaround for stablehlo-2630: stablehlo.add of booleans is specified as OR, but MLIR folds
# constants with XOR (true + true is false). So bool has separate operations below.


@operation
def add(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns ``x1 + x2``. Integers wrap around on overflow; two bools give their OR.

    The arrays broadcast and promote, else `ShapeError` or `DtypeError`.
    """
    a, b = binary("add", x1, x2, ANY)
    return emit(hlo.or_ if a.dtype.kind == "b" else hlo.add, a, b)


@operation
def subtract(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns ``x1 - x2``. Integers wrap around on overflow; two bools are refused, as in NumPy.

    The arrays broadcast and promote, else `ShapeError` or `DtypeError`.
    """
    return emit(hlo.subtract, *binary("subtract", x1, x2, SIGNED))


@operation
def multiply(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns ``x1 * x2``. Integers wrap around on overflow; two bools give their AND.

    The arrays broadcast and promote, else `ShapeError` or `DtypeError`.
    """
    a, b = binary("multiply", x1, x2, ANY)
    return emit(hlo.and_ if a.dtype.kind == "b" else hlo.multiply, a, b)


@operation
def divide(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns ``x1 / x2``. Integers give float32, 64-bit integers float64, as in JAX.

    The arrays broadcast and promote, else `ShapeError` or `DtypeError`.
    """
    return emit(hlo.divide, *binary("divide", x1, x2, FLOATING))


@operation
def floor_divide(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns ``x1 / x2`` rounded towards minus infinity, as Python's ``//``. Real dtypes.

    Floats follow NumPy: ``x // 0`` is an infinity or NaN, ``inf // x`` is NaN. An integer divided
    by 0 gives 0, as in NumPy (XLA's own result is -1: https://github.com/jax-ml/jax/issues/11990).
    The arrays broadcast and promote, else `ShapeError` or `DtypeError`.

    >>> xp.floor_divide(xp.asarray([7, -7]), 2)
    Array([ 3, -4], dtype=int32)
    """
    a, b = binary("floor_divide", x1, x2, REAL)
    return _float_divmod(a, b)[0] if dtype_kind(a.dtype) == "f" else _integer_divmod(a, b)[0]


@operation
def remainder(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns ``x1 % x2`` with the sign of ``x2``, as Python's ``%``. Real dtypes.

    ``x % 0`` is NaN for floats and 0 for integers, as in NumPy. The arrays broadcast and promote,
    else `ShapeError` or `DtypeError`.

    >>> xp.remainder(xp.asarray([7, -7]), 3)
    Array([1, 2], dtype=int32)
    """
    a, b = binary("remainder", x1, x2, REAL)
    return _float_divmod(a, b)[1] if dtype_kind(a.dtype) == "f" else _integer_divmod(a, b)[1]


@operation
def divmod(x1: Tracer, x2: Tracer, /) -> tuple[Tracer, Tracer]:
    """Returns ``(floor_divide(x1, x2), remainder(x1, x2))`` as one launch."""
    a, b = binary("divmod", x1, x2, REAL)
    quotient, rest = (_float_divmod if dtype_kind(a.dtype) == "f" else _integer_divmod)(a, b)
    return quotient, rest


def _integer_divmod(a: Tracer, b: Tracer) -> tuple[Tracer, Tracer]:
    zero, one = full(a.shape, 0, a.dtype), full(a.shape, 1, a.dtype)
    by_zero = compare(b, zero, "EQ")  # Workaround for xla-integer-division
    divisor = select(by_zero, one, b)
    quotient, rest = emit(hlo.divide, a, divisor), emit(hlo.remainder, a, divisor)
    if dtype_kind(a.dtype) == "i":
        # StableHLO truncates; Python's quotient is one less if the remainder has another sign.
        opposite = compare(emit(hlo.xor, rest, divisor), zero, "LT")
        low = emit(hlo.and_, opposite, compare(rest, zero, "NE"))
        quotient = select(low, emit(hlo.subtract, quotient, one), quotient)
        rest = select(low, emit(hlo.add, rest, divisor), rest)
    return select(by_zero, zero, quotient), rest


def _float_divmod(a: Tracer, b: Tracer) -> tuple[Tracer, Tracer]:
    narrow = a.dtype
    if itemsize_bits(narrow) < 32:  # (a - rest) / b needs a wider dtype
        a, b = convert(a, np.float32), convert(b, np.float32)
    zero = full(a.shape, 0, a.dtype)
    rest = emit(hlo.remainder, a, b)
    exact = compare(rest, zero, "EQ")
    quotient = emit(hlo.divide, emit(hlo.subtract, a, rest), b)
    # The remainder has the divisor's sign: where the signs differ, one divisor is added.
    differs = emit(hlo.xor, compare(b, zero, "LT"), compare(rest, zero, "LT"))
    low = emit(hlo.and_, differs, emit(hlo.not_, exact))
    quotient = select(low, emit(hlo.subtract, quotient, full(a.shape, 1, a.dtype)), quotient)
    rest = select(low, emit(hlo.add, rest, b), select(exact, with_sign(zero, sign_bits(b)), rest))
    # (a - rest) / b is within rounding of a whole number.
    whole = emit(hlo.round_nearest_even, quotient)
    ratio = emit(hlo.divide, a, b)
    whole = select(compare(quotient, zero, "EQ"), with_sign(zero, sign_bits(ratio)), whole)
    whole = select(compare(b, zero, "EQ"), ratio, whole)
    return convert(whole, narrow), convert(rest, narrow)


@operation
def negative(x: Tracer, /) -> Tracer:
    """Returns ``-x``. Numeric dtypes; unsigned integers wrap around.

    Keeps the shape and dtype. Raises `DtypeError` for bool.
    """
    return emit(hlo.negate, unary("negative", x, SIGNED))


@operation
def positive(x: Tracer, /) -> Tracer:
    """Returns ``x`` unchanged.

    Any dtype. Keeps the shape and dtype. Raises `NotAnArray` unless ``x`` is an array or a number.
    """
    return unary("positive", x, ANY)


@operation
def abs(x: Tracer, /) -> Tracer:
    """Returns the absolute value; real for complex arrays.

    Any dtype. Keeps the shape. Raises `NotAnArray` unless ``x`` is an array or a number.
    """
    x = unary("abs", x, ANY)
    if dtype_kind(x.dtype) in "bu":
        return x
    size = emit(hlo.abs, x)
    if dtype_kind(x.dtype) != "c":
        return size
    # Workaround for jax-37990: XLA gives NaN for (inf, NaN), C99 infinity.
    return select(is_infinite(x), full(x.shape, np.inf, size.dtype), size)


@operation
def sign(x: Tracer, /) -> Tracer:
    """Returns -1, 0 or 1 by the sign of ``x``; ``x / abs(x)`` for complex arrays, NaN for NaN.

    Keeps the shape and dtype. The sign of -0.0 is 0.0, as in NumPy (in JAX -0.0). Raises
    `DtypeError` for bool.
    """
    x = unary("sign", x, SIGNED)
    zero = full(x.shape, 0, x.dtype)
    if dtype_kind(x.dtype) == "u":
        return convert(compare(x, zero, "NE"), x.dtype)
    if dtype_kind(x.dtype) == "i":
        return emit(hlo.sign, x)
    return select(compare(x, zero, "EQ"), zero, emit(hlo.sign, x))


@operation
def square(x: Tracer, /) -> Tracer:
    """Returns ``x * x``; int32 for bool.

    Any dtype. Keeps the shape. Raises `NotAnArray` unless ``x`` is an array or a number.
    """
    x = unary("square", x, NUMERIC)
    return emit(hlo.multiply, x, x)


@operation
def reciprocal(x: Tracer, /) -> Tracer:
    """Returns ``1 / x``. Dtypes as `divide`.

    Keeps the shape. Raises `NotAnArray` unless ``x`` is an array or a number.
    """
    x = unary("reciprocal", x, FLOATING)
    return emit(hlo.divide, full(x.shape, 1, x.dtype), x)
