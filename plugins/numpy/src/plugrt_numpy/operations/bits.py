"""Counts of bits, shifts, and floats of fewer bits (``reduce_precision``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from plugrt_numpy.data_types import (
    Array,
    Dtype,
    Function,
    bit_width,
    bits_dtype,
    compute_wide,
    dtype_kind,
    wide_dtype,
)
from plugrt_numpy.operation import Lowering, Operation


def _to_unsigned(array: Array, dtype: Dtype) -> Array:
    """Returns the bits of integers, in an unsigned dtype that NumPy computes with."""
    if bit_width(dtype) < 8:
        narrow: Array = array.astype(np.uint8) & np.uint8((1 << bit_width(dtype)) - 1)
        return narrow
    return array.view(bits_dtype(dtype))


def population_count(dtype: Dtype) -> Function:
    """Returns the function that counts the ones."""
    return lambda x: np.bitwise_count(_to_unsigned(x, dtype)).astype(dtype)


def count_leading_zeros(dtype: Dtype) -> Function:
    """Returns the function that counts the zeros above the highest one."""
    width = bit_width(dtype)
    steps = [s for s in (32, 16, 8, 4, 2, 1) if s < width]

    def count(x: Array) -> Array:
        # With every bit below the highest one set, the ones are all but the leading zeros.
        bits = _to_unsigned(x, dtype)
        for step in steps:
            bits = bits | (bits >> bits.dtype.type(step))
        leading: Array = (np.uint8(width) - np.bitwise_count(bits)).astype(dtype)
        return leading

    return count


def _to_signed(array: Array, dtype: Dtype) -> Array:
    """Returns the bits of integers, in a signed dtype that NumPy computes with."""
    if bit_width(dtype) < 8:
        unused = np.int8(8 - bit_width(dtype))
        extended: Array = (array.astype(np.int8) << unused) >> unused
        return extended
    return array.view(np.dtype(f"i{dtype.itemsize}"))


def _shift(ufunc: Any, bits: Callable[[Array, Dtype], Array], kinds: str) -> Lowering:
    """Returns the lowering of a shift of ``bits``, which dtypes of ``kinds`` are already.

    As in NumPy, a count at or above the width, or below 0, leaves only the sign.
    """

    def lower(op: Operation) -> Function:
        dtype = op.dtype
        if bit_width(dtype) < 8:
            return lambda x, s: ufunc(bits(x, dtype), bits(s, dtype)).astype(dtype)
        if dtype_kind(dtype) in kinds:
            shift: Function = ufunc
            return shift
        return lambda x, s: ufunc(bits(x, dtype), bits(s, dtype)).view(dtype)

    return lower


def _reduce_precision(op: Operation) -> Function:
    exponent, mantissa = op.integer("exponent_bits"), op.integer("mantissa_bits")
    dtype = op.dtype
    wide = wide_dtype(dtype)
    return compute_wide(lambda x: reduce_precision(x, wide, exponent, mantissa), dtype)


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
    # Without a mantissa there is no NaN: XLA gives infinity, of any sign.
    nan = x if mantissa_bits else dtype.type(np.inf)
    result: Array = np.where(np.isnan(x), nan, np.asarray(rounded).view(dtype))
    return result


OPERATIONS: dict[str, Lowering] = {
    "stablehlo.reduce_precision": _reduce_precision,
    "stablehlo.shift_left": _shift(np.left_shift, _to_unsigned, "iu"),
    "stablehlo.shift_right_arithmetic": _shift(np.right_shift, _to_signed, "i"),
    "stablehlo.shift_right_logical": _shift(np.right_shift, _to_unsigned, "u"),
}
"""Operation name to lowering."""
