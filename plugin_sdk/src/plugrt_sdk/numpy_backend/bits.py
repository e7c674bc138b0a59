"""Counts of bits, shifts, and floats of fewer bits (``reduce_precision``)."""

from __future__ import annotations

import numpy as np

from plugrt_sdk.numpy_backend.data_types import (
    Array,
    Dtype,
    Function,
    bit_width,
    bits_dtype,
    dtype_kind,
    wide_dtype,
    widened,
)
from plugrt_sdk.numpy_backend.operation import Lowering, Operation


def _unsigned(array: Array, dtype: Dtype) -> Array:
    """Returns the bits of integers, in an unsigned dtype that NumPy computes with."""
    if bit_width(dtype) < 8:
        narrow: Array = array.astype(np.uint8) & np.uint8((1 << bit_width(dtype)) - 1)
        return narrow
    return array.view(bits_dtype(dtype))


def population_count(dtype: Dtype) -> Function:
    """Returns the function that counts the ones."""
    return lambda x: np.bitwise_count(_unsigned(x, dtype)).astype(dtype)


def count_leading_zeros(dtype: Dtype) -> Function:
    """Returns the function that counts the zeros above the highest one."""
    width = bit_width(dtype)
    steps = [s for s in (32, 16, 8, 4, 2, 1) if s < width]

    def count(x: Array) -> Array:
        # With every bit below the highest one set, the ones are what is not a leading zero.
        bits = _unsigned(x, dtype)
        for step in steps:
            bits = bits | (bits >> bits.dtype.type(step))
        leading: Array = (np.uint8(width) - np.bitwise_count(bits)).astype(dtype)
        return leading

    return count


def _shift_left(op: Operation) -> Function:
    dtype = op.dtype
    if bit_width(dtype) >= 8:
        return np.left_shift  # a count at or above the width, or below 0, gives 0
    return lambda x, s: np.left_shift(
        _unsigned(x, dtype), np.minimum(_unsigned(s, dtype), np.uint8(8))
    ).astype(dtype)


def _shift_right_arithmetic(op: Operation) -> Function:
    dtype = op.dtype
    if dtype_kind(dtype) == "i" and bit_width(dtype) >= 8:
        return np.right_shift
    signed = np.dtype(np.int8) if bit_width(dtype) < 8 else np.dtype(f"i{dtype.itemsize}")
    if dtype_kind(dtype) == "u" and bit_width(dtype) < 8:
        unit = np.int8(8 - bit_width(dtype))
        return lambda x, s: np.right_shift(
            (x.astype(np.int8) << unit) >> unit, _clamped(s, dtype)
        ).astype(dtype)
    if bit_width(dtype) < 8:
        return lambda x, s: np.right_shift(x.astype(np.int8), _clamped(s, dtype)).astype(dtype)
    return lambda x, s: np.right_shift(x.view(signed), s.view(signed)).view(dtype)


def _clamped(count: Array, dtype: Dtype) -> Array:
    return np.minimum(_unsigned(count, dtype), np.uint8(7)).astype(np.int8)


def _shift_right_logical(op: Operation) -> Function:
    dtype = op.dtype
    if bit_width(dtype) < 8:
        return lambda x, s: np.right_shift(_unsigned(x, dtype), _unsigned(s, dtype)).astype(dtype)
    if dtype_kind(dtype) == "u":
        return np.right_shift
    return lambda x, s: np.right_shift(_unsigned(x, dtype), _unsigned(s, dtype)).view(dtype)


def _reduce_precision(op: Operation) -> Function:
    exponent, mantissa = op.integer("exponent_bits"), op.integer("mantissa_bits")
    dtype = op.dtype
    wide = wide_dtype(dtype)
    return widened(lambda x: reduce_precision(x, wide, exponent, mantissa), dtype)


_MANTISSA = {2: 10, 4: 23, 8: 52}


def reduce_precision(x: Array, dtype: Dtype, exponent_bits: int, mantissa_bits: int) -> Array:
    """Rounds floats to fewer bits: to even; out of range to infinity, tiny ones to 0."""
    bits = np.asarray(x).view(bits_dtype(dtype))
    unit, total = bits.dtype.type, dtype.itemsize * 8
    own = _MANTISSA[dtype.itemsize]
    rounded = bits
    if mantissa_bits < own:
        dropped = own - mantissa_bits
        last = (bits >> unit(dropped)) & unit(1)
        half = unit((1 << (dropped - 1)) - 1)
        rounded = (bits + last + half) & unit((1 << total) - (1 << dropped))
    sign_bit = unit(1 << (total - 1))
    own_exponent = total - 1 - own
    if exponent_bits < own_exponent:
        magnitude, sign = rounded & ~sign_bit, rounded & sign_bit
        field = magnitude >> unit(own)
        bias, smaller = (1 << (own_exponent - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        infinity = unit(((1 << own_exponent) - 1) << own)
        magnitude = np.where(field > unit(bias + smaller), infinity, magnitude)
        magnitude = np.where(field <= unit(bias - smaller), unit(0), magnitude)
        rounded = (magnitude | sign).astype(bits.dtype)
    result: Array = np.where(np.isnan(x), x, np.asarray(rounded).view(dtype))
    return result


OPERATIONS: dict[str, Lowering] = {
    "stablehlo.reduce_precision": _reduce_precision,
    "stablehlo.shift_left": _shift_left,
    "stablehlo.shift_right_arithmetic": _shift_right_arithmetic,
    "stablehlo.shift_right_logical": _shift_right_logical,
}
"""Operation name to lowering."""
