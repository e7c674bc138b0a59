"""`convert_element_type`, `bitcast_convert_type` and `reduce_precision`."""

from __future__ import annotations

from plugrt.array_api.dtypes import as_dtype
from plugrt.errors import ArgumentError, DtypeError, ShapeError
from plugrt.interface import TensorType
from plugrt.lax.operand_checks import check_dtype_kind
from plugrt.tracing.emit import convert, emit, hlo, strong
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import itemsize_bits
from plugrt.tracing.tracer import Tracer
from plugrt.typing import DTypeLike


@operation(static=("new_dtype",), weak_by="none")
def convert_element_type(operand: Tracer, new_dtype: DTypeLike) -> Tracer:
    """Returns the elements in another dtype; ``float``, ``int`` and ``complex`` are the defaults.

    A conversion of floats to integers drops the fraction, of complex to real numbers the imaginary
    part. Keeps the shape. Raises `UnsupportedDtype` for a dtype that devices lack. As
    ``jax.lax.convert_element_type``.
    """
    return strong(convert(operand, as_dtype(new_dtype)))


@operation(static=("new_dtype",), weak_by="none")
def bitcast_convert_type(operand: Tracer, new_dtype: DTypeLike) -> Tracer:
    """Returns the same bits as elements of another dtype.

    A wider dtype removes the last dimension, which must be exactly one element; a narrower one adds
    a last dimension. Any dtypes but bool. Raises `DtypeError` for bool and `ShapeError` if the last
    dimension does not match. As ``jax.lax.bitcast_convert_type``.

    >>> lax.bitcast_convert_type(xp.asarray(1.0), xp.uint32)
    Array(1065353216, dtype=uint32)
    """
    dtype = as_dtype(new_dtype)
    if operand.dtype == dtype:
        return strong(operand)
    if bool in (operand.dtype, dtype):
        raise DtypeError("lax.bitcast_convert_type does not take booleans, which have no bits")
    old, new = itemsize_bits(operand.dtype), itemsize_bits(dtype)
    shape = operand.shape
    if old > new:
        shape = (*shape, old // new)
    elif old < new:
        if not shape or shape[-1] != new // old:
            raise ShapeError(
                f"lax.bitcast_convert_type makes a {dtype.name} of {new // old} "
                f"{operand.dtype.name} in the last dimension; found shape {shape}"
            )
        shape = shape[:-1]
    result: Tracer = emit(hlo.bitcast_convert, operand, result=TensorType(shape, dtype))
    return result


@operation(static=("exponent_bits", "mantissa_bits"))
def reduce_precision(operand: Tracer, exponent_bits: int, mantissa_bits: int) -> Tracer:
    """Returns floats rounded as if they had this many bits.

    The shape and dtype of ``operand`` stay. Raises `DtypeError` for dtypes that are no real floats
    and `ArgumentError` for impossible numbers of bits. As ``jax.lax.reduce_precision``.
    """
    check_dtype_kind("reduce_precision", "operand", operand.dtype, "f")
    if exponent_bits < 1 or mantissa_bits < 0:
        raise ArgumentError(
            "lax.reduce_precision needs at least 1 exponent bit and 0 mantissa bits; got "
            f"{exponent_bits} and {mantissa_bits}"
        )
    result: Tracer = emit(
        hlo.reduce_precision, operand, exponent_bits=exponent_bits, mantissa_bits=mantissa_bits
    )
    return result
