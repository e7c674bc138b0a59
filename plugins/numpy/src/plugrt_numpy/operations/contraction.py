"""``dot_general``: products of arrays, summed over pairs of dimensions."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import ml_dtypes
import numpy as np

from plugrt.stablehlo.bindings import hlo
from plugrt_numpy.data_types import (
    BOOL,
    Array,
    Dtype,
    Function,
    bit_width,
    is_complex,
    is_float,
    is_integer,
    wide_dtype,
)
from plugrt_numpy.operation import Lowering, Operation

_FLOAT64: Dtype = np.dtype(np.float64)
_PRECISIONS = {
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f16": np.dtype(np.float16),
    "f8E5M2": np.dtype(ml_dtypes.float8_e5m2),
    "f8E4M3FN": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8E4M3B11FNUZ": np.dtype(ml_dtypes.float8_e4m3b11fnuz),
    "f8E5M2FNUZ": np.dtype(ml_dtypes.float8_e5m2fnuz),
    "f8E4M3FNUZ": np.dtype(ml_dtypes.float8_e4m3fnuz),
}
"""The dtypes that an algorithm rounds operands to. TF32 is not among them: float32 is as good."""


def product_dtype(left: Dtype, right: Dtype, result: Dtype, terms: int) -> Dtype:
    """Returns the dtype to multiply and add in.

    Integers are multiplied as float64 if every sum of so many products is exact in it: NumPy has no
    fast product of integers.
    """
    if BOOL in (left, right):
        return BOOL
    if is_integer(result):
        if bit_width(left) + bit_width(right) + max(terms - 1, 0).bit_length() <= 53:
            return _FLOAT64
        return result
    if is_complex(result):
        return result
    return max(
        (wide_dtype(d) for d in (left, right, result) if is_float(d)), key=lambda d: d.itemsize
    )


def from_products(products: Array, dtype: Dtype) -> Array:
    """Converts sums of products to the result's dtype; integers keep their low bits."""
    if products.dtype == dtype:
        return products
    if is_integer(dtype) and products.dtype == _FLOAT64:
        return products.astype(np.int64).astype(dtype)
    return products.astype(dtype)


class DotDimensions(NamedTuple):
    """Dimensions of the left and the right operand of a ``dot_general``, in the result's order."""

    batch: tuple[list[int], list[int]]
    summed: tuple[list[int], list[int]]
    free: tuple[list[int], list[int]]


def dot_dimensions(op: Operation) -> DotDimensions:
    """Returns the dimensions that a ``dot_general`` pairs, sums over and keeps."""
    numbers = hlo.DotDimensionNumbers(op.attribute("dot_dimension_numbers"))
    batch = [*numbers.lhs_batching_dimensions], [*numbers.rhs_batching_dimensions]
    summed = [*numbers.lhs_contracting_dimensions], [*numbers.rhs_contracting_dimensions]
    left, right = (
        [d for d in range(len(kind.shape)) if d not in pairs + sums]
        for kind, pairs, sums in zip(op.operand_types[:2], batch, summed, strict=True)
    )
    return DotDimensions(batch, summed, (left, right))


class _Dimensions:
    """The shapes on the way to the result of a ``dot_general``."""

    def __init__(self, op: Operation) -> None:
        batch, summed, free = dot_dimensions(op)
        left, right = (kind.shape for kind in op.operand_types[:2])
        sizes = [left[d] for d in batch[0]]
        self.terms = math.prod(left[d] for d in summed[0])
        rows, columns = [left[d] for d in free[0]], [right[d] for d in free[1]]
        self.left = Arrangement(
            left, batch[0] + free[0] + summed[0], [*sizes, math.prod(rows), self.terms]
        )
        self.right = Arrangement(
            right, batch[1] + summed[1] + free[1], [*sizes, self.terms, math.prod(columns)]
        )
        self.shape = (*sizes, *rows, *columns)


class Arrangement:
    """A transposition and a reshape; each is skipped if it changes nothing."""

    def __init__(self, shape: Sequence[int], order: Sequence[int], target: Sequence[int]) -> None:
        self._order = None if list(order) == sorted(order) else tuple(order)
        moved = [shape[d] for d in order]
        self._target = None if moved == list(target) else tuple(target)

    def __call__(self, x: Array) -> Array:
        if self._order is not None:
            x = x.transpose(self._order)
        return x if self._target is None else x.reshape(self._target)


def summed_terms(op: Operation) -> int:
    """Returns how many products make an element of a ``dot_general``."""
    terms: int = _Dimensions(op).terms
    return terms


def _dot_general(op: Operation) -> Function:
    dims = _Dimensions(op)
    left, right = (kind.dtype for kind in op.operand_types[:2])
    return _product(op, dims, left, right)


def _product(op: Operation, dims: _Dimensions, left: Dtype, right: Dtype) -> Function:
    wide = product_dtype(left, right, op.dtype, dims.terms)
    arrange_left, arrange_right = dims.left, dims.right
    shape, dtype = dims.shape, op.dtype
    rounded = _algorithm_dtypes(op)

    def multiply(x: Array, y: Array) -> Array:
        if rounded:
            x, y = x.astype(rounded[0]), y.astype(rounded[1])
        products = np.matmul(
            arrange_left(x).astype(wide, copy=False), arrange_right(y).astype(wide, copy=False)
        )
        return from_products(products, dtype).reshape(shape)

    plain = wide == dtype and not rounded and left == right == wide
    if plain and is_integer(dtype) and bit_width(dtype) == 32 and dims.terms <= _MOST_TERMS:
        return lambda x, y: _multiply_halves(arrange_left(x), arrange_right(y)).reshape(shape)
    if plain:
        return lambda x, y: np.matmul(arrange_left(x), arrange_right(y)).reshape(shape)
    return multiply


_MOST_TERMS = 1 << 20
"""The most products of 16-bit halves whose sum is exact in float64; each has up to 33 bits."""


def _multiply_halves(x: Array, y: Array) -> Array:
    """Returns the low 32 bits of the matrix product of integers of 32 bits.

    It is the sum of float64 products of the halves: NumPy's product of integers is slow.
    """
    low = [(a & 0xFFFF).astype(_FLOAT64) for a in (x, y)]
    high = [(a >> 16).astype(_FLOAT64) for a in (x, y)]
    middle = (high[0] @ low[1] + low[0] @ high[1]).astype(np.int64)
    found: Array = ((low[0] @ low[1]).astype(np.int64) + (middle << 16)).astype(x.dtype)
    return found


def _algorithm_dtypes(op: Operation) -> tuple[Dtype, Dtype] | None:
    """Returns the dtypes that an algorithm rounds the operands to, if one is asked for.

    An algorithm of several components (``bf16_6x``) approximates a product of float32.
    """
    if not op.has("algorithm"):
        return None
    text = str(op.attribute("algorithm"))
    found = re.findall(r"(?:lhs|rhs)_precision_type = (\w+)", text)
    components = re.findall(r"(?:lhs|rhs)_component_count = (\d+)", text)
    if components != ["1", "1"]:
        return None
    given = [kind.dtype for kind in op.operand_types[:2]]
    left, right = (_PRECISIONS.get(n, g) for n, g in zip(found, given, strict=True))
    return None if [left, right] == given else (left, right)


def _dot(op: Operation) -> Function:
    left, right = (kind.dtype for kind in op.operand_types[:2])
    dtype = op.dtype
    wide = product_dtype(left, right, dtype, op.operand_types[0].shape[-1])
    return lambda x, y: from_products(np.asarray(np.dot(x.astype(wide), y.astype(wide))), dtype)


OPERATIONS: dict[str, Lowering] = {
    "stablehlo.dot": _dot,
    "stablehlo.dot_general": _dot_general,
}
"""Operation name to lowering."""
