"""Elementwise functions of one array: `abs`, `exp`, `sin`, `erf`, `integer_pow` and others."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from plugrt.array_api.elementwise.power import multiply_out
from plugrt.errors import ArgumentError, ArgumentTypeError
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.lax.operand_checks import check_dtype_kind
from plugrt.stablehlo.bindings import ir
from plugrt.tracing.argument_checks import kind_words
from plugrt.tracing.emit import chlo, compare, convert, emit, full, hlo, strong
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import dtype_kind, itemsize_bits
from plugrt.tracing.traceable import name_operation
from plugrt.tracing.tracer import Tracer

Unary: TypeAlias = Callable[[Any], Any]


def _make_unary(
    name: str, builder: Callable[..., object], kinds: str, says: str, gives: str = "its dtype"
) -> Unary:
    def body(x: Tracer) -> Tracer:
        check_dtype_kind(name, "x", x.dtype, kinds)
        result: Tracer = emit(builder, strong(x))
        return result

    _describe(body, name, kinds, says, gives)
    made: Unary = operation(body)
    return made


def _make_inexact(name: str, builder: Callable[..., object], kinds: str, says: str) -> Unary:
    def body(x: Tracer, accuracy: Accuracy = None) -> Tracer:
        check_dtype_kind(name, "x", x.dtype, kinds)
        result: Tracer = emit(builder, strong(x), **accuracy_attribute(name, accuracy))
        return result

    _describe(body, name, kinds, says, "its dtype", f" ``accuracy`` {_STATES}")
    made: Unary = operation(static=("accuracy",))(body)
    return made


_STATES = (
    "is how exact the compiler is to compute it, a `Tolerance` or an `AccuracyMode` (else "
    "`ArgumentTypeError`); one that has no such implementation raises its own error."
)


def _describe(
    body: Callable[..., object], name: str, kinds: str, says: str, gives: str, more: str = ""
) -> None:
    name_operation(
        body,
        __name__,
        name,
        f"Returns {says}, elementwise.",
        f"The dtype of x is one of these: {kind_words(kinds)} (else `DtypeError`); the result has "
        f"the shape of x and {gives}.{more}",
    )


abs = _make_unary(
    "abs", hlo.abs, "ifc", "the absolute value, of complex numbers the modulus", "real dtype"
)
neg = _make_unary("neg", hlo.negate, "iufc", "-x, of unsigned integers modulo their range")
floor = _make_unary("floor", hlo.floor, "f", "the largest integer that is not above x")
ceil = _make_unary("ceil", hlo.ceil, "f", "the smallest integer that is not below x")
is_finite = _make_unary(
    "is_finite", hlo.is_finite, "f", "whether x is neither infinite nor NaN", "dtype bool"
)
exp = _make_inexact("exp", hlo.exponential, "fc", "e to the power x")
expm1 = _make_inexact("expm1", hlo.exponential_minus_one, "fc", "exp(x) - 1, exact near 0")
log = _make_inexact("log", hlo.log, "fc", "the natural logarithm")
log1p = _make_inexact("log1p", hlo.log_plus_one, "fc", "log(1 + x), exact near 0")
sqrt = _make_inexact("sqrt", hlo.sqrt, "fc", "the square root")
rsqrt = _make_inexact("rsqrt", hlo.rsqrt, "fc", "one over the square root")
cbrt = _make_inexact("cbrt", hlo.cbrt, "f", "the cube root")
logistic = _make_inexact("logistic", hlo.logistic, "fc", "1 / (1 + exp(-x))")
sin = _make_inexact("sin", hlo.sine, "fc", "the sine")
cos = _make_inexact("cos", hlo.cosine, "fc", "the cosine")
tan = _make_inexact("tan", hlo.tan, "fc", "the tangent")
sinh = _make_unary("sinh", chlo.sinh, "fc", "the hyperbolic sine")
cosh = _make_unary("cosh", chlo.cosh, "fc", "the hyperbolic cosine")
tanh = _make_inexact("tanh", hlo.tanh, "fc", "the hyperbolic tangent")
asin = _make_unary("asin", chlo.asin, "fc", "the arc sine")
acos = _make_unary("acos", chlo.acos, "fc", "the arc cosine")
atan = _make_unary("atan", chlo.atan, "fc", "the arc tangent")
asinh = _make_unary("asinh", chlo.asinh, "fc", "the inverse hyperbolic sine")
acosh = _make_unary("acosh", chlo.acosh, "fc", "the inverse hyperbolic cosine")
atanh = _make_unary("atanh", chlo.atanh, "fc", "the inverse hyperbolic tangent")
erf = _make_unary("erf", chlo.erf, "f", "the error function")
erfc = _make_unary("erfc", chlo.erfc, "f", "1 - erf(x)")
erf_inv = _make_unary("erf_inv", chlo.erf_inv, "f", "the y with erf(y) = x")
lgamma = _make_unary("lgamma", chlo.lgamma, "f", "the logarithm of the gamma function's modulus")
digamma = _make_unary("digamma", chlo.digamma, "f", "the derivative of lgamma")
bessel_i1e = _make_unary("bessel_i1e", chlo.bessel_i1e, "f", "exp(-|x|) times Bessel's I1(x)")
bitwise_not = _make_unary("bitwise_not", hlo.not_, "biu", "x with each bit inverted")
population_count = _make_unary(
    "population_count", hlo.popcnt, "iu", "the number of bits that are 1"
)
clz = _make_unary("clz", hlo.count_leading_zeros, "iu", "the number of 0 bits before the first 1")
real = _make_unary("real", hlo.real, "c", "the real part", "a real dtype")
imag = _make_unary("imag", hlo.imag, "c", "the imaginary part", "a real dtype")


@operation
def sign(x: Tracer) -> Tracer:
    """Returns -1, 0 or 1 by the sign of x; x / abs(x) for complex numbers.

    Numeric dtypes. Keeps shape and dtype. Raises `DtypeError` for bool. As ``jax.lax.sign``.
    """
    check_dtype_kind("sign", "x", x.dtype, "iufc")
    if dtype_kind(x.dtype) == "u":
        return convert(compare(x, full(x.shape, 0, x.dtype), "NE"), x.dtype)
    result: Tracer = emit(hlo.sign, strong(x))
    return result


class RoundingMethod(enum.IntEnum):
    """How `round` rounds halves: away from 0, or to the nearest even integer."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


@operation(static=("rounding_method",))
def round(x: Tracer, rounding_method: int = 0) -> Tracer:
    """Returns the nearest integer; halves are rounded away from 0, or with method 1 to even.

    Real floating dtypes. Keeps shape and dtype. Raises `DtypeError`, and `ArgumentError` for
    another method. As ``jax.lax.round``; a `RoundingMethod`, JAX's too, is accepted.
    """
    check_dtype_kind("round", "x", x.dtype, "f")
    method = int(getattr(rounding_method, "value", rounding_method))
    if method not in (0, 1):
        raise ArgumentError(f"rounding_method of lax.round is 0 or 1; got {rounding_method!r}")
    result: Tracer = emit(hlo.round_nearest_even if method else hlo.round_nearest_afz, strong(x))
    return result


@operation(static=("accuracy",))
def exp2(x: Tracer, accuracy: Accuracy = None) -> Tracer:
    """Returns 2 to the power x, elementwise.

    Floating dtypes. Keeps shape and dtype. ``accuracy`` as for `exp`. Raises `DtypeError` for
    others. As ``jax.lax.exp2``.
    """
    check_dtype_kind("exp2", "x", x.dtype, "fc")
    factor = full(x.shape, np.log(2.0), x.dtype)
    result: Tracer = emit(
        hlo.exponential, emit(hlo.multiply, x, factor), **accuracy_attribute("exp2", accuracy)
    )
    return result


@operation
def square(x: Tracer) -> Tracer:
    """Returns x * x, elementwise.

    Numeric dtypes. Keeps shape and dtype. Raises `DtypeError` for bool. As ``jax.lax.square``.
    """
    check_dtype_kind("square", "x", x.dtype, "iufc")
    result: Tracer = emit(hlo.multiply, x, x)
    return result


@operation
def reciprocal(x: Tracer) -> Tracer:
    """Returns 1 / x, elementwise.

    Floating dtypes. Keeps shape and dtype. Raises `DtypeError` for others. As
    ``jax.lax.reciprocal``.
    """
    check_dtype_kind("reciprocal", "x", x.dtype, "fc")
    result: Tracer = emit(hlo.divide, full(x.shape, 1, x.dtype), x)
    return result


@operation
def conj(x: Tracer) -> Tracer:
    """Returns the complex conjugate; floats become complex numbers.

    Floating dtypes. Raises `DtypeError` for others. As ``jax.lax.conj``.
    """
    check_dtype_kind("conj", "x", x.dtype, "fc")
    if x.dtype.kind != "c":
        return convert(x, np.complex128 if itemsize_bits(x.dtype) == 64 else np.complex64)
    result: Tracer = emit(hlo.complex, emit(hlo.real, x), emit(hlo.negate, emit(hlo.imag, x)))
    return result


@operation(static=("y",))
def integer_pow(x: Tracer, y: int) -> Tracer:
    """Returns x to the power of a Python integer, by repeated squaring.

    Negative powers require floats or complex numbers. Numeric dtypes. Keeps shape and dtype.
    Raises `DtypeError` for bool, and for integers with a negative power. As
    ``jax.lax.integer_pow``.

    >>> lax.integer_pow(xp.asarray([2.0, 3.0]), -2)
    Array([0.25      , 0.11111111], dtype=float32)
    """
    check_dtype_kind("integer_pow", "x", x.dtype, "iufc" if y >= 0 else "fc")
    return strong(multiply_out(x, y))


class AccuracyMode(enum.Enum):
    """The most exact implementation of the compiler, or its default one."""

    HIGHEST = 1
    DEFAULT = 2


@dataclass(frozen=True)
class Tolerance:
    """The allowed error of a result: ``atol``, or ``rtol`` of it, or ``ulps`` of its last place.

    The compiler chooses an implementation within the largest nonzero tolerance, and raises if it
    has none. Raises `ArgumentError` if a tolerance is negative, not finite, or for ulps no integer
    of 64 bits, and if all are 0. As ``jax.lax.Tolerance``.
    """

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0

    @with_argument_errors
    def __post_init__(self) -> None:
        whole = isinstance(self.ulps, int | np.integer) and not isinstance(self.ulps, bool)
        sizes = self.atol, self.rtol
        if not (whole and 0 <= self.ulps < 2**63 and all(0 <= n < math.inf for n in sizes)):
            raise ArgumentError(
                "tolerances are finite and not negative, and ulps a whole number of 64 bits; got "
                f"{self!r:.100}"
            )
        if not (self.atol or self.rtol or self.ulps):
            raise ArgumentError("Tolerance takes one of atol, rtol and ulps at least, above 0")


Accuracy: TypeAlias = AccuracyMode | Tolerance | None


def accuracy_attribute(function: str, accuracy: Any) -> dict[str, ir.Attribute]:
    """Returns the attribute of an operation with its required accuracy, by the attribute's name.

    JAX's own modes and tolerances are accepted. Raises `ArgumentTypeError` for others.
    """
    mode = type(accuracy).__name__ == AccuracyMode.__name__  # JAX's has the same name
    name = accuracy.name if mode else None
    if accuracy is None or name == "DEFAULT":
        return {}
    if name == "HIGHEST":
        return {"result_accuracy": hlo.ResultAccuracyAttr.get(0.0, 0.0, 0, name)}
    try:
        numbers = float(accuracy.atol), float(accuracy.rtol), int(accuracy.ulps)
    except AttributeError:
        raise ArgumentTypeError(
            f"accuracy of lax.{function} is {accuracy!r:.60} of type {type(accuracy).__qualname__};"
            " it takes a lax.AccuracyMode, or a lax.Tolerance"
        ) from None
    return {"result_accuracy": hlo.ResultAccuracyAttr.get(*numbers, "TOLERANCE")}
