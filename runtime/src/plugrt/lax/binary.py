"""Elementwise functions of two arrays: `add`, `mul`, `eq`, `shift_left` and others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from plugrt.array_api.dtypes import as_dtype
from plugrt.array_api.sorting import larger, smaller
from plugrt.lax.operand_checks import check_dtype_kind, same_dtype, same_shape
from plugrt.tracing.argument_checks import kind_words
from plugrt.tracing.emit import (
    chlo,
    compare,
    convert,
    emit,
    full,
    hlo,
    strong,
    with_weakness,
)
from plugrt.tracing.operation import OfKeys, operation
from plugrt.tracing.promotion import dtype_kind, itemsize_bits
from plugrt.tracing.traceable import name_operation
from plugrt.tracing.tracer import Tracer
from plugrt.typing import DTypeLike

Binary: TypeAlias = Callable[[Any, Any], Any]


def _make_operation(
    body: Callable[..., object],
    name: str,
    says: str,
    kinds: str,
    gives: str = "that dtype",
    keys: OfKeys = "none",
) -> Binary:
    name_operation(
        body,
        __name__,
        name,
        f"Returns {says}, elementwise.",
        f"The arrays have one dtype, one of these: {kind_words(kinds)} (else `DtypeError`), and "
        "one shape (else `ShapeError`); scalars go with any. The result has that shape and "
        f"{gives}.",
    )
    made: Binary = operation(keys=keys)(body)
    return made


def _make_binary(name: str, builder: Callable[..., object], kinds: str, says: str) -> Binary:
    def body(x: Tracer, y: Tracer) -> Tracer:
        x, y = prepare_operands(name, x, y, kinds)
        result: Tracer = emit(builder, x, y)
        return result

    gives = "a complex dtype" if name == "complex" else "that dtype"
    return _make_operation(body, name, says, kinds, gives)


def _make_choice(name: str, choose: Callable[[Tracer, Tracer], Tracer], says: str) -> Binary:
    def body(x: Tracer, y: Tracer) -> Tracer:
        return choose(*prepare_operands(name, x, y, "biufc"))

    return _make_operation(body, name, says, "biufc")


def _make_comparison(
    name: str, direction: str, kinds: str, says: str, keys: OfKeys = "none"
) -> Binary:
    def body(x: Tracer, y: Tracer) -> Tracer:
        x, y = prepare_operands(name, x, y, kinds)
        return compare(x, y, direction)

    return _make_operation(body, name, f"whether {says}", kinds, "dtype bool", keys)


def prepare_operands(
    name: str, x: Tracer, y: Tracer, kinds: str, names: Sequence[str] = "xy"
) -> list[Tracer]:
    """Returns the two operands in one dtype, of one of the ``kinds``, and in one shape."""
    pair = same_dtype(name, names, [x, y])
    check_dtype_kind(name, names[0], pair[0].dtype, kinds)
    return same_shape(name, names, pair)


# These three have other parameter names than x and y in JAX.


@operation
def nextafter(x1: Tracer, x2: Tracer) -> Tracer:
    """Returns the number next to x1 towards x2, elementwise.

    Real floats of one dtype and shape (scalars go with any). Raises `DtypeError` or `ShapeError`.
    As ``jax.lax.nextafter``.
    """
    result: Tracer = emit(
        chlo.next_after, *prepare_operands("nextafter", x1, x2, "f", ("x1", "x2"))
    )
    return result


@operation
def zeta(x: Tracer, q: Tracer) -> Tracer:
    """Returns Hurwitz's zeta function, elementwise.

    Real floats of one dtype and shape (scalars go with any). Raises `DtypeError` or `ShapeError`.
    As ``jax.lax.zeta``.
    """
    result: Tracer = emit(chlo.zeta, *prepare_operands("zeta", x, q, "f", "xq"))
    return result


@operation
def polygamma(m: Tracer, x: Tracer) -> Tracer:
    """Returns the m-th derivative of digamma at x, elementwise.

    Real floats of one dtype and shape (scalars go with any). Raises `DtypeError` or `ShapeError`.
    As ``jax.lax.polygamma``.
    """
    result: Tracer = emit(chlo.polygamma, *prepare_operands("polygamma", m, x, "f", "mx"))
    return result


add = _make_binary("add", hlo.add, "iufc", "x + y")
sub = _make_binary("sub", hlo.subtract, "iufc", "x - y")
div = _make_binary("div", hlo.divide, "iufc", "x / y, of integers without the fraction")
rem = _make_binary("rem", hlo.remainder, "iuf", "the remainder of x / y, with the sign of x")
max = _make_choice("max", larger, "the larger of x and y, NaN if one is")
min = _make_choice("min", smaller, "the smaller of x and y, NaN if one is")
atan2 = _make_binary("atan2", hlo.atan2, "fc", "the angle of the point (y, x), x the ordinate")
complex = _make_binary("complex", hlo.complex, "f", "x + iy")
bitwise_and = _make_binary("bitwise_and", hlo.and_, "biu", "the bits that are 1 in both")
bitwise_or = _make_binary("bitwise_or", hlo.or_, "biu", "the bits that are 1 in one or both")
bitwise_xor = _make_binary("bitwise_xor", hlo.xor, "biu", "the bits that differ")
shift_left = _make_binary("shift_left", hlo.shift_left, "iu", "x with its bits moved y up")
shift_right_logical = _make_binary(
    "shift_right_logical", hlo.shift_right_logical, "iu", "x with its bits moved y down, 0 above"
)
shift_right_arithmetic = _make_binary(
    "shift_right_arithmetic", hlo.shift_right_arithmetic, "iu", "x with its bits moved y down, "
    "the sign bit repeated above"
)  # fmt: skip
eq = _make_comparison("eq", "EQ", "biufc", "x = y", "all")
ne = _make_comparison("ne", "NE", "biufc", "x differs from y", "any")
lt = _make_comparison("lt", "LT", "biuf", "x < y")
le = _make_comparison("le", "LE", "biuf", "x <= y")
gt = _make_comparison("gt", "GT", "biuf", "x > y")
ge = _make_comparison("ge", "GE", "biuf", "x >= y")


@operation(static=("out_dtype",), weak_by="body")
def mul(x: Tracer, y: Tracer, *, out_dtype: DTypeLike | None = None) -> Tracer:
    """Returns x * y, elementwise: numbers of one dtype and shape (scalars combine with any).

    The result has that shape and dtype; or ``out_dtype``, to which x and y, of any numeric dtypes,
    are converted first. Raises `DtypeError` or `ShapeError`. As ``jax.lax.mul``.
    """
    is_weak = out_dtype is None and x.weak and y.weak
    if out_dtype is not None:
        for name, operand in (("x", x), ("y", y)):
            check_dtype_kind("mul", name, operand.dtype, "iufc")
        x, y = (convert(operand, as_dtype(out_dtype)) for operand in (x, y))
    x, y = prepare_operands("mul", x, y, "iufc")
    return with_weakness(emit(hlo.multiply, x, y), is_weak)


@operation
def mulhi(x: Tracer, y: Tracer, /) -> Tracer:
    """Returns the upper half of the digits of x * y, elementwise: of N bits the upper N of 2 N.

    Integers of one dtype and shape (scalars go with any). Raises `DtypeError` or `ShapeError`. As
    ``jax.lax.mulhi``.

    >>> lax.mulhi(xp.asarray([2**30, -5], dtype=xp.int32), 8)
    Array([ 2, -1], dtype=int32)
    """
    x, y = prepare_operands("mulhi", x, y, "iu")
    kind, bits = dtype_kind(x.dtype), itemsize_bits(x.dtype)
    shift = hlo.shift_right_arithmetic if kind == "i" else hlo.shift_right_logical
    if bits < 64:
        wide = np.dtype(f"{'u' * (kind == 'u')}int{2 * bits}")
        product = convert(x, wide) * convert(y, wide)
        return convert(emit(shift, product, full(x.shape, bits, wide)), x.dtype)
    half = full(x.shape, 32, x.dtype)
    low = full(x.shape, 2**32 - 1, x.dtype)
    x1, y1 = emit(shift, x, half), emit(shift, y, half)
    x0, y0 = emit(hlo.and_, x, low), emit(hlo.and_, y, low)
    # Each of these is below 2**64: only the upper halves of the carries are kept.
    carried = x1 * y0 + emit(hlo.shift_right_logical, x0 * y0, half)
    middle = x0 * y1 + emit(hlo.and_, carried, low)
    result: Tracer = x1 * y1 + emit(shift, carried, half) + emit(shift, middle, half)
    return result


@operation(weak_by="body")
def pow(x: Tracer, y: Tracer) -> Tracer:
    """Returns x to the power y, elementwise: a float or complex x; y of its dtype or an integer.

    The result has the dtype of x. Raises `DtypeError` or `ShapeError` otherwise. As
    ``jax.lax.pow``.
    """
    check_dtype_kind("pow", "x", x.dtype, "fc")
    is_weak = x.weak and y.weak
    if dtype_kind(y.dtype) in "iu":
        x, y = strong(x), convert(y, x.dtype)
    x, y = prepare_operands("pow", x, y, "fc")
    return with_weakness(emit(hlo.power, x, y), is_weak)
