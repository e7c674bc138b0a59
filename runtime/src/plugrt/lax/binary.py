"""Elementwise functions of two arrays: `add`, `mul`, `eq`, `shift_left` and others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from plugrt.array_api.ordering import larger, smaller
from plugrt.lax.operand_checks import check_dtype_kind, same_dtype, same_shape
from plugrt.lax.operation_names import kind_words, name_operation
from plugrt.tracing.emit import chlo, compare, convert, emit, hlo, strong, with_weakness
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import dtype_kind
from plugrt.tracing.tracer import Tracer

Binary: TypeAlias = Callable[[Any, Any], Any]


def _make_operation(
    body: Callable[..., Any], name: str, says: str, kinds: str, gives: str = "that dtype"
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
    made: Binary = operation(body)
    return made


def _make_binary(name: str, builder: Callable[..., Any], kinds: str, says: str) -> Binary:
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


def _make_comparison(name: str, direction: str, kinds: str, says: str) -> Binary:
    def body(x: Tracer, y: Tracer) -> Tracer:
        x, y = prepare_operands(name, x, y, kinds)
        return compare(x, y, direction)

    return _make_operation(body, name, f"whether {says}", kinds, "dtype bool")


def prepare_operands(
    name: str, x: Tracer, y: Tracer, kinds: str, names: Sequence[str] = "xy"
) -> list[Tracer]:
    """Returns the two operands in one dtype of the ``kinds`` admitted and in one shape."""
    pair = same_dtype(name, names, [x, y])
    check_dtype_kind(name, names[0], pair[0].dtype, kinds)
    return same_shape(name, names, pair)


# The three whose parameters JAX does not call x and y.


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
mul = _make_binary("mul", hlo.multiply, "iufc", "x * y")
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
eq = _make_comparison("eq", "EQ", "biufc", "x = y")
ne = _make_comparison("ne", "NE", "biufc", "x differs from y")
lt = _make_comparison("lt", "LT", "biuf", "x < y")
le = _make_comparison("le", "LE", "biuf", "x <= y")
gt = _make_comparison("gt", "GT", "biuf", "x > y")
ge = _make_comparison("ge", "GE", "biuf", "x >= y")


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
