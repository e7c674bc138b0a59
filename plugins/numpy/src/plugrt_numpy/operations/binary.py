"""Elementwise operations of two and three operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from plugrt_numpy.data_types import (
    BOOL,
    Array,
    Dtype,
    Function,
    bits_to_order,
    compute_wide,
    dtype_kind,
    is_complex,
    is_float,
    is_integer,
    wide_dtype,
)
from plugrt_numpy.operation import Lowering, Operation


def _binary(make: Callable[[Dtype], Function]) -> Lowering:
    """Returns the lowering of an operation whose result has the operands' dtype."""
    return lambda op: compute_wide(make(op.dtype), op.dtype)


def _ufunc(function: Function) -> Lowering:
    return _binary(lambda dtype: function)


def divide(dtype: Dtype) -> Function:
    """Returns the division of a dtype; of integers, it is truncated, and ``x / 0`` is -1."""
    if is_complex(dtype):
        return _complex_quotient
    if not is_integer(dtype):
        return np.divide
    all_ones = (
        wide_dtype(dtype).type(-1)
        if dtype_kind(dtype) == "i"
        else np.invert(wide_dtype(dtype).type(0))
    )

    def quotient(x: Array, y: Array) -> Array:
        # The floor is one too small where the signs differ and there is a remainder.
        floor = np.floor_divide(x, y)
        if dtype_kind(dtype) == "i":
            floor = floor + (((x ^ y) < 0) & (floor * y != x))
        result: Array = np.where(y == 0, all_ones, floor)
        return result

    return quotient


def _complex_quotient(x: Array, y: Array) -> Array:
    """Divides complex numbers; infinities and zeros as C's Annex G has them, and XLA."""
    quotient: Array = np.divide(x, y)
    lost = (np.isnan(quotient.real) & np.isnan(quotient.imag)) | (y == 0)
    if not np.any(lost):
        return quotient
    x, y = np.broadcast_arrays(x, y)
    a, b, c, d = x.real, x.imag, y.real, y.imag
    infinite_x, infinite_y = np.isinf(a) | np.isinf(b), np.isinf(c) | np.isinf(d)
    finite_x, finite_y = np.isfinite(a) & np.isfinite(b), np.isfinite(c) & np.isfinite(d)
    by_zero = lost & (y == 0) & ~(np.isnan(a) & np.isnan(b))
    of_infinity = lost & infinite_x & finite_y & ~by_zero
    by_infinity = lost & infinite_y & finite_x
    infinity = np.copysign(a.dtype.type(np.inf), c)
    boxed = [np.where(of_infinity, np.copysign(np.isinf(v).astype(v.dtype), v), v) for v in (a, b)]
    boxes = [np.where(by_infinity, np.copysign(np.isinf(v).astype(v.dtype), v), v) for v in (c, d)]
    (p, q), (r, s) = boxed, boxes
    factor = np.where(of_infinity, a.dtype.type(np.inf), a.dtype.type(0))
    real, imaginary = factor * (p * r + q * s), factor * (q * r - p * s)
    repaired = of_infinity | by_infinity
    out = np.array(quotient)
    out.real = np.where(by_zero, infinity * a, np.where(repaired, real, out.real))
    out.imag = np.where(by_zero, infinity * b, np.where(repaired, imaginary, out.imag))
    return out


def remainder(dtype: Dtype) -> Function:
    """Returns the remainder with the dividend's sign; of integers, ``x % 0`` is ``x``."""
    if not is_integer(dtype):
        return np.fmod
    return lambda x, y: np.where(y == 0, x, np.fmod(x, y))


def maximum(dtype: Dtype) -> Function:
    """Returns the maximum: NaN if one is; of zeros the positive one; complex by real part first."""
    if is_float(dtype):
        return _maximum_of_floats
    return np.maximum


def minimum(dtype: Dtype) -> Function:
    """Returns the minimum, as `maximum`."""
    if is_float(dtype):
        return _minimum_of_floats
    return np.minimum


# Of two zeros NumPy returns either, whatever their signs. A check for a zero that may be the wrong
# one costs a fraction of the operation; if there is one, the sign is made of the operands' signs.


def _maximum_of_floats(x: Array, y: Array) -> Array:
    larger: Array = np.asarray(np.maximum(x, y))
    if not _has_negative_zero(larger):
        return larger
    signs: Array = _bits(x) & _bits(y)  # a maximum is negative if both are
    signs |= np.iinfo(signs.dtype).max
    bits = _bits(larger)
    bits &= signs
    return larger


def _minimum_of_floats(x: Array, y: Array) -> Array:
    smaller: Array = np.asarray(np.minimum(x, y))
    has_zero = not smaller.view(f"u{smaller.itemsize}").min(initial=1)
    if not has_zero or not (_has_negative_zero(x) or _has_negative_zero(y)):
        return smaller
    signs: Array = _bits(x) | _bits(y)  # a minimum is negative if one of them is
    signs &= np.iinfo(signs.dtype).min
    bits = _bits(smaller)
    bits |= signs
    return smaller


def _has_negative_zero(x: Array) -> bool:
    bits = _bits(x)
    return bool(bits.min(initial=0) == np.iinfo(bits.dtype).min)


def _bits(x: Array) -> Array:
    """Returns a view of floats as signed integers; -0 is the smallest."""
    array: Array = np.asarray(x)
    return array.view(f"i{array.itemsize}")


def power(dtype: Dtype) -> Function:
    """Returns the power; a negative power of an integer is 0, but for 1 and -1."""
    if dtype_kind(dtype) != "i":
        return np.power

    def integer_power(x: Array, y: Array) -> Array:
        result = np.power(x, np.maximum(y, 0))
        odd = np.where(y & 1, x, 1)
        of_negative = np.where(x == 1, 1, np.where(x == -1, odd, 0))
        chosen: Array = np.where(y < 0, of_negative, result).astype(result.dtype)
        return chosen

    return integer_power


def _atan2(dtype: Dtype) -> Function:
    if not is_complex(dtype):
        return np.arctan2
    # atan2(y, x) = -i log((x + iy) / sqrt(x² + y²))
    return lambda y, x: (-1j * np.log((x + 1j * y) / np.sqrt(x * x + y * y))).astype(dtype)


def _complex(op: Operation) -> Function:
    dtype = op.dtype

    def join(real: Array, imaginary: Array) -> Array:
        out = np.empty(np.broadcast_shapes(np.shape(real), np.shape(imaginary)), dtype)
        out.real, out.imag = real, imaginary
        return out

    return join


_COMPARISONS: dict[str, Any] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


def _compare(op: Operation) -> Function:
    dtype = op.operand_types[0].dtype
    function: Function = _COMPARISONS[op.word("comparison_direction")]
    if op.word("compare_type") == "TOTALORDER":
        return lambda x, y: function(bits_to_order(np.asarray(x)), bits_to_order(np.asarray(y)))
    return compute_wide(function, dtype, BOOL)


_FEW = 1024


def _select(op: Operation) -> Function:
    dtype = op.dtype
    is_integer_size = dtype.itemsize in (1, 2, 4, 8)
    integers = np.dtype(f"i{dtype.itemsize if is_integer_size else 8}")

    def select(condition: Array, yes: Array, no: Array) -> Array:
        chosen: Array = np.where(condition, yes, no)
        return chosen

    def select_bits(condition: Array, yes: Array, no: Array) -> Array:
        """Selects by masks of bits: np.where branches, and is four times as slow at random."""
        if not np.shape(condition) == np.shape(yes) == np.shape(no) or np.size(no) < _FEW:
            return select(condition, yes, no)
        mask = np.negative(condition.astype(integers))
        bits = no.view(integers)
        chosen: Array = (bits ^ ((bits ^ yes.view(integers)) & mask)).view(dtype)
        return chosen

    if dtype.isbuiltin == 1:
        return select_bits if is_integer_size else select
    return lambda c, x, y: select(c, x, y).astype(dtype)


def _clamp(op: Operation) -> Function:
    dtype = op.dtype
    larger, smaller = maximum(dtype), minimum(dtype)
    return compute_wide(lambda low, x, high: smaller(larger(low, x), high), dtype)


OPERATIONS: dict[str, Lowering] = {
    "stablehlo.add": _ufunc(np.add),
    "stablehlo.and": _ufunc(np.bitwise_and),
    "stablehlo.atan2": _binary(_atan2),
    "stablehlo.clamp": _clamp,
    "stablehlo.compare": _compare,
    "stablehlo.complex": _complex,
    "stablehlo.divide": _binary(divide),
    "stablehlo.maximum": _binary(maximum),
    "stablehlo.minimum": _binary(minimum),
    "stablehlo.multiply": _ufunc(np.multiply),
    "stablehlo.or": _ufunc(np.bitwise_or),
    "stablehlo.power": _binary(power),
    "stablehlo.remainder": _binary(remainder),
    "stablehlo.select": _select,
    "stablehlo.subtract": _ufunc(np.subtract),
    "stablehlo.xor": _ufunc(np.bitwise_xor),
}
"""Operation name to lowering."""
