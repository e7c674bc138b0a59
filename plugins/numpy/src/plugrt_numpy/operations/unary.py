"""Elementwise operations of one operand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from plugrt_numpy.data_types import (
    Array,
    Dtype,
    Function,
    compute_wide,
    is_complex,
    is_float,
)
from plugrt_numpy.operation import Lowering, Operation
from plugrt_numpy.operations.bits import count_leading_zeros, population_count


def _unary(make: Callable[[Dtype], Function]) -> Lowering:
    """Returns the lowering of an operation whose result has the operand's dtype."""

    def lower(op: Operation) -> Function:
        dtype = op.operand_types[0].dtype
        return compute_wide(make(dtype), dtype)

    return lower


def _ufunc(function: Function) -> Lowering:
    return _unary(lambda dtype: function)


def _abs(op: Operation) -> Function:
    return compute_wide(np.absolute, op.operand_types[0].dtype, op.dtype)


def _cbrt(dtype: Dtype) -> Function:
    return (lambda x: np.power(x, dtype.type(1 / 3))) if is_complex(dtype) else np.cbrt


def _expm1(dtype: Dtype) -> Function:
    if not is_complex(dtype):
        return np.expm1

    def compute(x: Array) -> Array:
        # NumPy's has an imaginary part of NaN for inf+0j; XLA's is +0 if the argument's is 0.
        found = np.expm1(x.astype(np.complex128, copy=False))
        on_axis = np.expm1(np.real(x)) + dtype.type(0)
        return np.where(np.imag(x) == 0, on_axis, found).astype(dtype, copy=False)

    return compute


def _logistic(dtype: Dtype) -> Function:
    one = dtype.type(1) if dtype.isbuiltin == 1 else np.float32(1)
    return lambda x: one / (one + np.exp(-x))


def _rsqrt(dtype: Dtype) -> Function:
    one = dtype.type(1) if dtype.isbuiltin == 1 else np.float32(1)
    return lambda x: one / np.sqrt(x)


def _sign(dtype: Dtype) -> Function:
    if is_complex(dtype):
        return _complex_sign
    # np.sign gives +0 for -0; a NaN is kept.
    return (lambda x: np.where(x == 0, x, np.sign(x))) if is_float(dtype) else np.sign


def _complex_sign(x: Array) -> Array:
    """Divides both parts by the magnitude, which a complex quotient would lose at infinity."""
    magnitude = np.absolute(x)
    out = np.zeros(np.shape(x), x.dtype)
    np.divide(x.real, magnitude, out=out.real, where=magnitude != 0)
    np.divide(x.imag, magnitude, out=out.imag, where=magnitude != 0)
    return out


def _round_half_away(x: Array) -> Array:
    down = np.trunc(x)
    rounded: Array = np.where(np.absolute(x - down) >= 0.5, down + np.copysign(1, x), down)
    signed: Array = np.copysign(rounded.astype(x.dtype, copy=False), x)
    return signed


def _part(function: Function) -> Lowering:
    """Returns the lowering of the real or imaginary part, which a real operand has as well."""

    def lower(op: Operation) -> Function:
        if is_complex(op.operand_types[0].dtype):
            return function
        return np.zeros_like if function is np.imag else np.asarray

    return lower


def _is_finite(op: Operation) -> Function:
    return compute_wide(np.isfinite, op.operand_types[0].dtype, op.dtype)


def _not(op: Operation) -> Function:
    return compute_wide(np.invert, op.dtype)


def _identity(op: Operation) -> Function:
    return lambda x: x


def _bits(function: Callable[[Any], Any]) -> Lowering:
    return lambda op: function(op.dtype)


OPERATIONS: dict[str, Lowering] = {
    "stablehlo.abs": _abs,
    "stablehlo.cbrt": _unary(_cbrt),
    "stablehlo.ceil": _ufunc(np.ceil),
    "stablehlo.cosine": _ufunc(np.cos),
    "stablehlo.count_leading_zeros": _bits(count_leading_zeros),
    "stablehlo.exponential": _ufunc(np.exp),
    "stablehlo.exponential_minus_one": _unary(_expm1),
    "stablehlo.floor": _ufunc(np.floor),
    "stablehlo.imag": _part(np.imag),
    "stablehlo.is_finite": _is_finite,
    "stablehlo.log": _ufunc(np.log),
    "stablehlo.log_plus_one": _ufunc(np.log1p),
    "stablehlo.logistic": _unary(_logistic),
    "stablehlo.negate": _ufunc(np.negative),
    "stablehlo.not": _not,
    "stablehlo.popcnt": _bits(population_count),
    "stablehlo.real": _part(np.real),
    "stablehlo.round_nearest_afz": _unary(lambda dtype: _round_half_away),
    "stablehlo.round_nearest_even": _ufunc(np.rint),
    "stablehlo.rsqrt": _unary(_rsqrt),
    "stablehlo.sign": _unary(_sign),
    "stablehlo.sine": _ufunc(np.sin),
    "stablehlo.sqrt": _ufunc(np.sqrt),
    "stablehlo.tan": _ufunc(np.tan),
    "stablehlo.tanh": _ufunc(np.tanh),
}
"""Operation name to lowering."""
