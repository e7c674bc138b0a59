"""`conj`, `real` and `imag`; the handling of signs in complex functions."""

from __future__ import annotations

from collections.abc import Callable

from plugrt.array_api.elementwise.float_properties import sign_bits, with_sign
from plugrt.array_api.elementwise.operands import ANY, unary
from plugrt.array_api.sorting import complex_parts
from plugrt.tracing.emit import emit, full, hlo
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import dtype_kind
from plugrt.tracing.tracer import Tracer


def apply_symmetric(
    function: Callable[[Tracer], Tracer], z: Tracer, *, odd: bool = False
) -> Tracer:
    """Returns a complex function of ``z`` that has f(conj(z)) == conj(f(z)), also where z is -0.0.

    XLA loses the sign of zeros, which selects the side of a branch cut. So the function is
    evaluated in the upper half plane, or, if it is ``odd``, in the first quadrant, and the signs
    are restored.
    """
    # Workaround for jax-39110
    x, y = complex_parts(z)
    result = function(emit(hlo.complex, emit(hlo.abs, x) if odd else x, emit(hlo.abs, y)))
    u, v = complex_parts(result)
    if odd:
        return emit(hlo.complex, with_sign(u, sign_bits(x)), with_sign(v, sign_bits(y)))
    return emit(hlo.complex, u, emit(hlo.select, sign_bits(y), emit(hlo.negate, v), v))


@operation
def conj(x: Tracer, /) -> Tracer:
    """Returns the complex conjugate; real arrays unchanged.

    Any dtype. Keeps the shape and dtype. Raises `NotAnArray` unless ``x`` is an array or a number.
    """
    x = unary("conj", x, ANY)
    if dtype_kind(x.dtype) != "c":
        return x
    real_part, imaginary = complex_parts(x)
    return emit(hlo.complex, real_part, emit(hlo.negate, imaginary))


@operation
def real(x: Tracer, /) -> Tracer:
    """Returns the real part; real arrays unchanged.

    Any dtype. Keeps the shape. Raises `NotAnArray` unless ``x`` is an array or a number.
    """
    x = unary("real", x, ANY)
    return emit(hlo.real, x) if dtype_kind(x.dtype) == "c" else x


@operation
def imag(x: Tracer, /) -> Tracer:
    """Returns the imaginary part, which is 0 for real arrays.

    Any dtype. Keeps the shape. Raises `NotAnArray` unless ``x`` is an array or a number.
    """
    x = unary("imag", x, ANY)
    return emit(hlo.imag, x) if dtype_kind(x.dtype) == "c" else full(x.shape, 0, x.dtype)
