"""Trigonometric and hyperbolic functions, element by element.

Of complex numbers, they take the principal value; branch cuts are those of C and NumPy.
"""

from __future__ import annotations

from plugrt.array_api.operands import FLOATING, REAL_FLOATING, binary, unary
from plugrt.execution.array import Array
from plugrt.tracing.emit import chlo, emit, hlo
from plugrt.tracing.operation import operation


@operation
def acos(x: Array, /) -> Array:
    """Returns the inverse cosine, in [0, pi]; NaN outside of [-1, 1]. Floating dtypes."""
    return emit(chlo.acos, unary("acos", x, FLOATING))


@operation
def acosh(x: Array, /) -> Array:
    """Returns the inverse hyperbolic cosine; NaN below 1. Floating dtypes."""
    return emit(chlo.acosh, unary("acosh", x, FLOATING))


@operation
def asin(x: Array, /) -> Array:
    """Returns the inverse sine, in [-pi/2, pi/2]; NaN outside of [-1, 1]. Floating dtypes."""
    return emit(chlo.asin, unary("asin", x, FLOATING))


@operation
def asinh(x: Array, /) -> Array:
    """Returns the inverse hyperbolic sine. Floating dtypes."""
    return emit(chlo.asinh, unary("asinh", x, FLOATING))


@operation
def atan(x: Array, /) -> Array:
    """Returns the inverse tangent, in [-pi/2, pi/2]. Floating dtypes."""
    return emit(chlo.atan, unary("atan", x, FLOATING))


@operation
def atanh(x: Array, /) -> Array:
    """Returns the inverse hyperbolic tangent; NaN outside of [-1, 1]. Floating dtypes."""
    return emit(chlo.atanh, unary("atanh", x, FLOATING))


@operation
def cos(x: Array, /) -> Array:
    """Returns the cosine of radians. Floating dtypes."""
    return emit(hlo.cosine, unary("cos", x, FLOATING))


@operation
def cosh(x: Array, /) -> Array:
    """Returns the hyperbolic cosine. Floating dtypes."""
    return emit(chlo.cosh, unary("cosh", x, FLOATING))


@operation
def sin(x: Array, /) -> Array:
    """Returns the sine of radians. Floating dtypes."""
    return emit(hlo.sine, unary("sin", x, FLOATING))


@operation
def sinh(x: Array, /) -> Array:
    """Returns the hyperbolic sine. Floating dtypes."""
    return emit(chlo.sinh, unary("sinh", x, FLOATING))


@operation
def tan(x: Array, /) -> Array:
    """Returns the tangent of radians. Floating dtypes."""
    return emit(chlo.tan, unary("tan", x, FLOATING))


@operation
def tanh(x: Array, /) -> Array:
    """Returns the hyperbolic tangent. Floating dtypes."""
    return emit(hlo.tanh, unary("tanh", x, FLOATING))


@operation
def atan2(x1: Array, x2: Array, /) -> Array:
    """Returns the angle of the point (``x2``, ``x1``), in [-pi, pi]. Real floating dtypes."""
    return emit(hlo.atan2, *binary("atan2", x1, x2, REAL_FLOATING))
