"""Elementwise arithmetic: `add`, `divide`, `floor_divide`, `remainder`, `pow`, `sign`…"""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrt.argument_errors import with_argument_errors
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
from plugrt.array_api.fold import highest
from plugrt.errors import DtypeError
from plugrt.execution.array import Array
from plugrt.tracing.emit import (
    as_tracer,
    compare,
    convert,
    emit,
    full,
    hlo,
    select,
    with_weakness,
)
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import dtype_kind, is_weak_result, itemsize_bits
from plugrt.tracing.tracer import Tracer
from plugrt.typing import ArrayLike

# stablehlo.add of booleans is specified as OR, but MLIR folds constants with XOR (true + true is
# false: https://github.com/openxla/stablehlo/issues/2630). So bool has operations of its own below.


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
    """Returns ``x1 / x2``. Integers give float32, those of 64 bits float64, as in JAX.

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
    by_zero = compare(b, zero, "EQ")
    divisor = select(by_zero, one, b)
    quotient, rest = emit(hlo.divide, a, divisor), emit(hlo.remainder, a, divisor)
    if dtype_kind(a.dtype) == "i":
        # StableHLO truncates; Python's quotient is one less where a rest is left of other sign.
        opposite = compare(emit(hlo.xor, rest, divisor), zero, "LT")
        low = emit(hlo.and_, opposite, compare(rest, zero, "NE"))
        quotient = select(low, emit(hlo.subtract, quotient, one), quotient)
        rest = select(low, emit(hlo.add, rest, divisor), rest)
    return select(by_zero, zero, quotient), rest


def _float_divmod(a: Tracer, b: Tracer) -> tuple[Tracer, Tracer]:
    narrow = a.dtype
    if itemsize_bits(narrow) < 32:  # the quotient (a - rest) / b needs a wider format
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


@with_argument_errors
def pow(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Returns ``x1 ** x2``. Numeric dtypes; special values of floats as C's ``pow``.

    Integers stay integers and wrap around; a power that overflowed with an exponent of 64 or more
    is as the backend computes it. As in JAX a scalar exponent of integers must not be negative
    (`DtypeError`); to a negative power in an array, or in an argument of a traced function, they
    give the true result truncated: 0 but for the bases 1 and -1 (JAX: undefined). The arrays
    broadcast and promote, else `ShapeError` or `DtypeError`.
    """
    check_exponent(x1, x2)
    if is_weak_base(x1, x2):
        return known_power(x1, exponent=x2)  # type: ignore[no-any-return]
    result: Array = power(x1, x2)
    return result


def is_weak_base(x1: Any, x2: Any) -> bool:
    """Whether it is a weak array, outside of a trace, to the power of a Python integer.

    In a trace the integer is seen to be one: the power is as weak as its base.
    """
    return type(x2) in (int, bool) and type(x1) is Array and x1._signature.weak


def check_exponent(base: Any, exponent: Any) -> None:
    """Raises `DtypeError` for integers to a negative power, where the one exponent is known."""
    known = exponent.scalar if type(exponent) is Tracer else exponent
    if not isinstance(known, int):
        if getattr(known, "ndim", 1) or not _is_integral(known):
            return
        known = int(known)
    if known < 0 and _is_integral(base):
        what = f"integers ({base.dtype.name})" if hasattr(base, "dtype") else repr(base)
        raise DtypeError(
            f"pow got {what} to the power {known}; integers have no negative powers. Make the base "
            f"a float (astype), or the exponent ({float(known)})"
        )


def _is_integral(x: Any) -> bool:
    dtype = getattr(x, "dtype", None)
    return isinstance(x, int) if dtype is None else dtype_kind(dtype) in "biu"


def _power(x1: Tracer, x2: Tracer, /) -> Tracer:
    a, b = binary("pow", x1, x2, NUMERIC)
    kind = dtype_kind(a.dtype)
    if kind in "iu":
        made = _integer_power(a, b)
    else:
        made = _complex_power(a, b) if kind == "c" else emit(hlo.power, a, b)
    return with_weakness(made, _is_weak_power(x1, x2, kind))


def _is_weak_power(x1: Tracer, x2: Tracer, kind: str) -> bool:
    """Whether a power is weak: it has the dtype of its base where integers are the exponents."""
    if x2.weak and isinstance(x2.scalar, int):
        return x1.weak and x1.dtype.kind != "b"
    if kind in "iu":
        return False
    if dtype_kind(x2.dtype) in "iu" and dtype_kind(x1.dtype) in "fc":
        return x1.weak and x2.weak
    return is_weak_result([(x.dtype, x.weak) for x in (x1, x2)])


_power.__name__ = _power.__qualname__ = "pow"  # what messages and programs call it
power = operation(weak_by="body")(_power)
"""`pow` as one program, whatever the exponent is."""


@operation(static=("exponent",), weak_by="body")
def known_power(x1: Tracer, *, exponent: int) -> Tracer:
    """Returns ``x1 ** exponent``, of which one program is made for each exponent."""
    return _power(x1, as_tracer(exponent))


def _integer_power(a: Tracer, b: Tracer) -> Tracer:
    zero, one = full(a.shape, 0, a.dtype), full(a.shape, 1, a.dtype)
    # XLA uses six bits of the exponent (https://github.com/jax-ml/jax/issues/5987). They suffice
    # for the bases 1 and -1; powers of even bases have overflowed to 0 by then.
    low = full(a.shape, min(63, int(highest(a.dtype))), a.dtype)
    power = emit(hlo.power, a, emit(hlo.and_, b, low))
    if itemsize_bits(a.dtype) >= 8:
        even = compare(emit(hlo.and_, a, one), zero, "EQ")
        power = select(emit(hlo.and_, even, compare(b, low, "GT")), zero, power)
    if dtype_kind(a.dtype) == "i":
        unit = compare(emit(hlo.abs, a), one, "EQ")
        vanishes = emit(hlo.and_, compare(b, zero, "LT"), emit(hlo.not_, unit))
        power = select(vanishes, zero, power)
    return power


def _complex_power(a: Tracer, b: Tracer) -> Tracer:
    # XLA (jaxlib 0.10) computes exp(b * log(a)), NaN for a == 0; a positive power of 0 is 0.
    zero, real_part = full(a.shape, 0, a.dtype), emit(hlo.real, b)
    positive_ = compare(real_part, full(a.shape, 0, real_part.dtype), "GT")
    vanishes = emit(hlo.and_, compare(a, zero, "EQ"), positive_)
    return select(vanishes, zero, emit(hlo.power, a, b))


@operation
def negative(x: Tracer, /) -> Tracer:
    """Returns ``-x``. Numeric dtypes; unsigned integers wrap around.

    The shape and dtype stay. Raises `DtypeError` for bool.
    """
    return emit(hlo.negate, unary("negative", x, SIGNED))


@operation
def positive(x: Tracer, /) -> Tracer:
    """Returns ``x`` as it is.

    Any dtype; the shape and dtype stay.
    """
    return unary("positive", x, ANY)


@operation
def abs(x: Tracer, /) -> Tracer:
    """Returns the absolute value; real for complex arrays.

    Any dtype; the shape stays.
    """
    x = unary("abs", x, ANY)
    if dtype_kind(x.dtype) in "bu":
        return x
    size = emit(hlo.abs, x)
    if dtype_kind(x.dtype) != "c":
        return size
    # XLA gives NaN for (inf, NaN), C99 infinity: https://github.com/jax-ml/jax/issues/37990
    return select(is_infinite(x), full(x.shape, np.inf, size.dtype), size)


@operation
def sign(x: Tracer, /) -> Tracer:
    """Returns -1, 0 or 1 by the sign of ``x``; ``x / abs(x)`` for complex arrays, NaN for NaN.

    The shape and dtype stay. Raises `DtypeError` for bool.
    """
    x = unary("sign", x, SIGNED)
    if dtype_kind(x.dtype) == "u":
        return convert(compare(x, full(x.shape, 0, x.dtype), "NE"), x.dtype)
    return emit(hlo.sign, x)


@operation
def square(x: Tracer, /) -> Tracer:
    """Returns ``x * x``; int32 for bool.

    Any dtype; the shape stays.
    """
    x = unary("square", x, NUMERIC)
    return emit(hlo.multiply, x, x)


@operation
def reciprocal(x: Tracer, /) -> Tracer:
    """Returns ``1 / x``. Dtypes as `divide`.

    The shape stays.
    """
    x = unary("reciprocal", x, FLOATING)
    return emit(hlo.divide, full(x.shape, 1, x.dtype), x)
