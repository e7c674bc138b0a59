"""Functions on the parts of complex numbers."""

from __future__ import annotations

from plugrt.array_api.floats import parts
from plugrt.array_api.operands import NUMERIC, unary
from plugrt.execution.array import Array
from plugrt.tracing.emit import emit, full, hlo
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import kind_of


@operation
def conj(x: Array, /) -> Array:
    """Returns the complex conjugate; real arrays as they are. Numeric dtypes."""
    x = unary("conj", x, NUMERIC)
    if kind_of(x.dtype) != "c":
        return x
    real_part, imaginary = parts(x)
    return emit(hlo.complex, real_part, emit(hlo.negate, imaginary))


@operation
def real(x: Array, /) -> Array:
    """Returns the real part; real arrays as they are. Numeric dtypes."""
    x = unary("real", x, NUMERIC)
    return emit(hlo.real, x) if kind_of(x.dtype) == "c" else x


@operation
def imag(x: Array, /) -> Array:
    """Returns the imaginary part, which is 0 for real arrays. Numeric dtypes."""
    x = unary("imag", x, NUMERIC)
    return emit(hlo.imag, x) if kind_of(x.dtype) == "c" else full(x.shape, 0, x.dtype)
