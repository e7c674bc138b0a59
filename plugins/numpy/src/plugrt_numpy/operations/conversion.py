"""Conversions of dtypes: by value, and of the bits as they are."""

from __future__ import annotations

import numpy as np

from plugrt_numpy.data_types import (
    BOOL,
    Array,
    Dtype,
    Function,
    bit_width,
    bits_dtype,
    integer_info,
    is_complex,
    is_float,
    is_integer,
    wide_dtype,
)
from plugrt_numpy.operation import Lowering, Operation


def converter(source: Dtype, target: Dtype) -> Function:
    """Returns the conversion between two dtypes.

    A float out of an integer's range becomes the nearest bound, and NaN 0, as in XLA; a complex
    number its real part; integers keep their low bits.
    """
    if source == target:
        return lambda x: x
    if is_complex(source) and not is_complex(target):
        part = converter(np.dtype(f"f{source.itemsize // 2}"), target)
        return lambda x: part(np.real(x))
    if target == BOOL:
        zero = source.type(0)
        return lambda x: np.not_equal(x, zero)
    if is_float(source) and is_integer(target):
        return _make_saturating(source, target)
    if wide_dtype(source) != source and wide_dtype(target) != target:
        wide = wide_dtype(source)
        return lambda x: x.astype(wide).astype(target)
    return lambda x: x.astype(target)


def _make_saturating(source: Dtype, target: Dtype) -> Function:
    wide = wide_dtype(source)
    wide = np.dtype(np.float32) if wide.itemsize < 4 else wide
    _, low, high = integer_info(target)
    narrow = wide_dtype(target)

    def convert(x: Array) -> Array:
        x = x.astype(wide, copy=False)
        # The bound above is exclusive: as a float it is a power of two, which the maximum is not.
        inside = (x > wide.type(low) - 1) & (x < wide.type(high + 1))
        inside |= x == wide.type(low)
        values = np.where(inside, x, 0).astype(narrow)
        if not np.all(inside):
            values = np.where(x >= wide.type(high + 1), narrow.type(high), values)
            values = np.where(x < wide.type(low), narrow.type(low), values)
        return values.astype(target, copy=False)

    return convert


def _convert(op: Operation) -> Function:
    return converter(op.operand_types[0].dtype, op.dtype)


def _bitcast_convert(op: Operation) -> Function:
    source, shape, target = op.operand_types[0].dtype, op.shape, op.dtype
    if bit_width(source) % 8 or bit_width(target) % 8:
        return _sub_byte_cast(source, target, shape)
    rank = len(op.operand_types[0].shape)

    def cast(x: Array) -> Array:
        if not rank and len(shape) == 0 and np.ndim(x):
            return x.view(target)  # within a region that is run for many elements at once
        return np.ascontiguousarray(x).reshape(-1).view(target).reshape(shape)

    return cast


def _sub_byte_cast(source: Dtype, target: Dtype, shape: tuple[int, ...]) -> Function:
    """Returns a cast of elements of less than a byte, which NumPy stores one per byte."""
    narrow, wide = bit_width(source), bit_width(target)

    def cast(x: Array) -> Array:
        mask = (1 << min(narrow, 64)) - 1
        bits = np.asarray(x).view(bits_dtype(source)).astype(np.uint64) & np.uint64(mask)
        if narrow < wide:
            ratio = wide // narrow
            places = np.arange(ratio, dtype=np.uint64) * np.uint64(narrow)
            bits = np.bitwise_or.reduce(bits << places, axis=-1)
        elif narrow > wide:
            places = np.arange(narrow // wide, dtype=np.uint64) * np.uint64(wide)
            bits = (bits[..., None] >> places) & np.uint64((1 << wide) - 1)
        if target == BOOL:
            return bits.reshape(shape).astype(BOOL)
        if is_integer(target):
            signed = bits.astype(wide_dtype(target) if wide < 8 else bits_dtype(target))
            return signed.view(target).reshape(shape) if wide >= 8 else signed.astype(target)
        return bits.astype(bits_dtype(target)).view(target).reshape(shape)

    return cast


OPERATIONS: dict[str, Lowering] = {
    "stablehlo.bitcast_convert": _bitcast_convert,
    "stablehlo.convert": _convert,
}
"""Operation name to lowering."""
