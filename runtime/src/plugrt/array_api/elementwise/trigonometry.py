"""Elementwise trigonometric and hyperbolic functions.

For complex numbers they return the principal value; branch cuts are as in C and NumPy.
"""

from __future__ import annotations

from collections.abc import Callable

from plugrt.array_api.elementwise.complex import apply_symmetric
from plugrt.array_api.elementwise.operands import FLOATING, binary, unary
from plugrt.array_api.sorting import complex_parts
from plugrt.tracing.emit import chlo, compare, emit, full, hlo, select
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import dtype_kind
from plugrt.tracing.tracer import Tracer


def _emit_inverse(builder: Callable[..., object], x: Tracer, *, odd: bool = False) -> Tracer:
    if dtype_kind(x.dtype) != "c":
        return emit(builder, x)
    return apply_symmetric(lambda z: emit(builder, z), x, odd=odd)


def _keep_small(imaginary: Tracer, slope: Tracer, b: Tracer) -> Tracer:
    """Returns an imaginary part, slope * sinh(b), with all its digits where ``b`` is below 1.

    XLA (jaxlib 0.10) computes hyperbolic functions of complex numbers from exponentials, which lose
    small numbers and the sign of zero.
    """
    # Workaround for xla-hyperbolic-zero
    small = compare(emit(hlo.abs, b), full(b.shape, 1, b.dtype), "LT")
    exact = emit(hlo.and_, small, emit(hlo.is_finite, slope))
    return select(exact, emit(hlo.multiply, slope, emit(chlo.sinh, b)), imaginary)


def _multiply_by_i(z: Tracer) -> Tracer:
    x, y = complex_parts(z)
    return emit(hlo.complex, emit(hlo.negate, y), x)


@operation
def acos(x: Tracer, /) -> Tracer:
    """Returns the inverse cosine, in [0, pi]; NaN outside of [-1, 1]. Floating dtypes.

    The result has the shape of ``x``; bool and integers are converted as in `divide`.
    Raises `NotAnArray`.
    """
    return _emit_inverse(chlo.acos, unary("acos", x, FLOATING))


@operation
def acosh(x: Tracer, /) -> Tracer:
    """Returns the inverse hyperbolic cosine; NaN below 1. Floating dtypes.

    The result has the shape of ``x``; bool and integers are converted as in `divide`.
    Raises `NotAnArray`.
    """
    return _emit_inverse(chlo.acosh, unary("acosh", x, FLOATING))


@operation
def asin(x: Tracer, /) -> Tracer:
    """Returns the inverse sine, in [-pi/2, pi/2]; NaN outside of [-1, 1]. Floating dtypes.

    The result has the shape of ``x``; bool and integers are converted as in `divide`.
    Raises `NotAnArray`.
    """
    return _emit_inverse(chlo.asin, unary("asin", x, FLOATING), odd=True)


@operation
def asinh(x: Tracer, /) -> Tracer:
    """Returns the inverse hyperbolic sine. Floating dtypes.

    The result has the shape of ``x``; bool and integers are converted as in `divide`.
    Raises `NotAnArray`.
    """
    return _emit_inverse(chlo.asinh, unary("asinh", x, FLOATING), odd=True)


@operation
def atan(x: Tracer, /) -> Tracer:
    """Returns the inverse tangent, in [-pi/2, pi/2]. Floating dtypes.

    The result has the shape of ``x``; bool and integers are converted as in `divide`.
    Raises `NotAnArray`.
    """
    return _emit_inverse(chlo.atan, unary("atan", x, FLOATING), odd=True)


@operation
def atanh(x: Tracer, /) -> Tracer:
    """Returns the inverse hyperbolic tangent; NaN outside of [-1, 1]. Floating dtypes.

    The result has the shape of ``x``; bool and integers are converted as in `divide`.
    Raises `NotAnArray`.
    """
    return _emit_inverse(chlo.atanh, unary("atanh", x, FLOATING), odd=True)


@operation
def cos(x: Tracer, /) -> Tracer:
    """Returns the cosine of radians. Floating dtypes.

    The result has the shape of ``x``; bool and integers are converted as in `divide`.
    Raises `NotAnArray`.
    """
    x = unary("cos", x, FLOATING)
    if dtype_kind(x.dtype) != "c":
        return emit(hlo.cosine, x)
    # Workaround for xla-complex-cosine: XLA (jaxlib 0.10) gives NaN for some infinite arguments of
    # cos; cos(z) == cosh(i*z) does not.
    u, v = complex_parts(emit(chlo.cosh, _multiply_by_i(x)))
    a, b = complex_parts(x)
    return emit(hlo.complex, u, _keep_small(v, emit(hlo.negate, emit(hlo.sine, a)), b))


@operation
def cosh(x: Tracer, /) -> Tracer:
    """Returns the hyperbolic cosine. Floating dtypes.

    The result has the shape of ``x``; bool and integers are converted as in `divide`.
    Raises `NotAnArray`.
    """
    return emit(chlo.cosh, unary("cosh", x, FLOATING))


@operation
def sin(x: Tracer, /) -> Tracer:
    """Returns the sine of radians. Floating dtypes.

    The result has the shape of ``x``; bool and integers are converted as in `divide`.
    Raises `NotAnArray`.
    """
    x = unary("sin", x, FLOATING)
    if dtype_kind(x.dtype) != "c":
        return emit(hlo.sine, x)
    u, v = complex_parts(emit(chlo.sinh, _multiply_by_i(x)))  # as in cos; sin(z) == -i sinh(iz)
    a, b = complex_parts(x)
    real = select(compare(a, full(a.shape, 0, a.dtype), "EQ"), a, v)
    return emit(hlo.complex, real, _keep_small(emit(hlo.negate, u), emit(hlo.cosine, a), b))


@operation
def sinh(x: Tracer, /) -> Tracer:
    """Returns the hyperbolic sine. Floating dtypes.

    The result has the shape of ``x``; bool and integers are converted as in `divide`.
    Raises `NotAnArray`.
    """
    return emit(chlo.sinh, unary("sinh", x, FLOATING))


@operation
def tan(x: Tracer, /) -> Tracer:
    """Returns the tangent of radians. Floating dtypes.

    The result has the shape of ``x``; bool and integers are converted as in `divide`.
    Raises `NotAnArray`.
    """
    return emit(chlo.tan, unary("tan", x, FLOATING))


@operation
def tanh(x: Tracer, /) -> Tracer:
    """Returns the hyperbolic tangent. Floating dtypes.

    The result has the shape of ``x``; bool and integers are converted as in `divide`.
    Raises `NotAnArray`. If ``x``
    has a real part of 0 and an imaginary part that is not finite, the result's real part is 0.
    """
    x = unary("tanh", x, FLOATING)
    found = emit(hlo.tanh, x)
    if dtype_kind(x.dtype) != "c":
        return found
    (real, imaginary), (a, b) = complex_parts(x), complex_parts(found)
    is_zero = compare(real, full(real.shape, 0, real.dtype), "EQ")
    lost = emit(hlo.and_, is_zero, emit(hlo.not_, emit(hlo.is_finite, imaginary)))
    return emit(hlo.complex, select(lost, real, a), b)


@operation
def atan2(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns the angle of the point (``x2``, ``x1``), in [-pi, pi]; for complex, JAX's formula.

    The arrays broadcast and promote, else `ShapeError` or `DtypeError`.
    """
    return emit(hlo.atan2, *binary("atan2", x1, x2, FLOATING))
