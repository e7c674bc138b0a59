"""`dot_general` and `dot`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from plugrt.array_api.dtypes import as_dtype
from plugrt.errors import ArgumentError, ArgumentTypeError, DtypeError, ShapeError
from plugrt.interface import TensorType
from plugrt.lax.dimension_arguments import normalize_dimensions
from plugrt.lax.precision import PrecisionLike, dot_algorithm, precision_config
from plugrt.tracing.emit import convert, emit, hlo, with_weakness
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import dtype_kind, itemsize_bits
from plugrt.tracing.tracer import Tracer
from plugrt.typing import DTypeLike

Dtype: TypeAlias = np.dtype[Any]
DotDimensionNumbers: TypeAlias = tuple[
    tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
]
"""((contracting dimensions of lhs, of rhs), (batch dimensions of lhs, of rhs))."""


@operation(
    static=("dimension_numbers", "precision", "preferred_element_type"), weak_by="body", shards=True
)
def dot_general(
    lhs: Tracer,
    rhs: Tracer,
    dimension_numbers: DotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Tracer:
    """Returns products summed over contracting dimensions, for each index of the batch dimensions.

    If dtypes differ, both operands are converted to the higher in XLA's order: complex above real,
    then by the range of exponents, the digits and the bits; weak ones are converted to the other.
    The result has the batch dimensions, then the others of ``lhs``, then the others of ``rhs``; it
    is weak if both are. Sums have ``preferred_element_type``, by default the operands' dtype, or
    the type that a `DotAlgorithm` states. Numeric dtypes and bool. Raises `ShapeError` if the sizes
    of paired dimensions differ, `AxisError` for a dimension out of range, `DtypeError` for a dtype
    that the algorithm does not support, and for sums of integers in fewer bits. As
    ``jax.lax.dot_general``.

    >>> x, y = xp.ones((5, 2, 3)), xp.ones((5, 3, 4))
    >>> lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,)))).shape
    (5, 2, 4)
    """
    is_weak = lhs.weak and rhs.weak
    dtype = _result_dtype(lhs.dtype, rhs.dtype, preferred_element_type)
    lhs, rhs, sums, algorithm = _convert_operands(lhs, rhs, dtype, precision)
    shape, numbers = _read_numbers(lhs, rhs, dimension_numbers)
    result: Tracer = emit(
        hlo.dot_general,
        lhs,
        rhs,
        result=TensorType(shape, sums),
        dot_dimension_numbers=numbers,
        precision_config=precision_config(precision),
        **algorithm,
    )
    return with_weakness(result if sums == dtype else convert(result, dtype), is_weak)


def _result_dtype(lhs: Dtype, rhs: Dtype, preferred: DTypeLike | None) -> Dtype:
    common = max(lhs, rhs, key=_rank_precision)
    if preferred is None:
        return common
    dtype = as_dtype(preferred)
    if dtype_kind(common) != "f" and itemsize_bits(dtype) < itemsize_bits(common):
        raise DtypeError(
            f"preferred_element_type of lax.dot_general is {dtype.name}, of fewer bits than the "
            f"{common.name} of the operands; floats alone may be summed up in fewer"
        )
    return dtype


def _convert_operands(
    lhs: Tracer, rhs: Tracer, dtype: Dtype, precision: PrecisionLike
) -> tuple[Tracer, Tracer, Dtype, dict[str, object]]:
    """Returns the operands in the precision's dtypes, the dtype of sums, and the algorithm."""
    algorithm = dot_algorithm(precision)
    if algorithm is None:
        common = max(lhs.dtype, rhs.dtype, key=_rank_precision)
        return convert(lhs, common), convert(rhs, common), dtype, {}
    types = algorithm.compute_types(lhs.dtype, rhs.dtype, dtype)
    stated = algorithm.attribute(types.lhs, types.rhs)
    named = {} if stated is None else {"algorithm": stated}
    return convert(lhs, types.lhs), convert(rhs, types.rhs), types.accumulation, named


def _read_numbers(
    lhs: Tracer, rhs: Tracer, dimension_numbers: DotDimensionNumbers
) -> tuple[tuple[int, ...], object]:
    """Returns the shape of the result, and StableHLO's attribute of dimension numbers."""
    contract, batch = read_pairs("dot_general", dimension_numbers)
    sides = [
        (
            normalize_dimensions("dot_general", contract[i], x.ndim),
            normalize_dimensions("dot_general", batch[i], x.ndim),
        )
        for i, x in enumerate((lhs, rhs))
    ]
    for what, left, right in zip(("contracting", "batch"), *sides, strict=True):
        sizes = [[x.shape[d] for d in dims] for x, dims in ((lhs, left), (rhs, right))]
        if sizes[0] != sizes[1]:
            raise ShapeError(
                f"lax.dot_general needs {what} dimensions of equal lengths; found {sizes[0]} of "
                f"lhs {lhs.shape} and {sizes[1]} of rhs {rhs.shape}"
            )
    shape = [lhs.shape[d] for d in sides[0][1]]
    for x, (contracting, batched) in zip((lhs, rhs), sides, strict=True):
        shape += [n for i, n in enumerate(x.shape) if i not in (*contracting, *batched)]
    (left, left_batch), (right, right_batch) = (map(list, side) for side in sides)
    return tuple(shape), hlo.DotDimensionNumbers.get(left_batch, right_batch, left, right)


def read_pairs(function: str, numbers: DotDimensionNumbers) -> tuple[tuple[Any, Any], ...]:
    """Returns the contracting dimensions of both operands, and the batch dimensions.

    Raises `ArgumentTypeError` for an object that is no pair of pairs.
    """
    pairs: list[Any] = []
    if isinstance(numbers, tuple | list):
        pairs = [tuple(pair) for pair in numbers if isinstance(pair, tuple | list)]
    if len(pairs) != 2 or [*map(len, pairs)] != [2, 2] or len(numbers) != 2:
        raise ArgumentTypeError(
            f"dimension_numbers of lax.{function} is {numbers!r:.80}; it takes "
            "((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch)), each dimensions"
        )
    return tuple(pairs)


def _rank_precision(dtype: Dtype) -> tuple[bool, int, int, int, bool]:
    """Returns a key that orders dtypes as XLA's ``HigherPrecisionType``."""
    kind = dtype_kind(dtype)
    if kind not in "fc":
        return False, -1, -1, 1 if kind == "b" else itemsize_bits(dtype), kind != "u"
    info: Any = ml_dtypes.finfo(dtype)
    return kind == "c", info.maxexp, info.nmant, info.bits, True


@operation(
    static=("dimension_numbers", "precision", "preferred_element_type"), weak_by="body", shards=True
)
def dot(
    lhs: Tracer,
    rhs: Tracer,
    *,
    dimension_numbers: DotDimensionNumbers | None = None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Tracer:
    """Returns the product of two vectors or matrices; with ``dimension_numbers`` as `dot_general`.

    Dtypes that differ are promoted. Raises `ArgumentError` for other ranks and `ShapeError` if the
    contracted sizes differ. As ``jax.lax.dot``.
    """
    numbers = dimension_numbers
    if numbers is None:
        if lhs.ndim not in (1, 2) or rhs.ndim not in (1, 2):
            raise ArgumentError(
                f"lax.dot takes vectors and matrices; found shapes {lhs.shape} and {rhs.shape}; "
                "others need dimension_numbers"
            )
        numbers = (((lhs.ndim - 1,), (0,)), ((), ()))
    result: Tracer = dot_general(lhs, rhs, numbers, precision, preferred_element_type)
    return result


@operation(static=("precision",), weak_by="body")
def batch_matmul(lhs: Tracer, rhs: Tracer, precision: PrecisionLike = None) -> Tracer:
    """Returns the products of the matrices in the last two dimensions of arrays of one rank.

    Raises `ArgumentError` for other ranks, `ShapeError` where sizes differ. As
    ``jax.lax.batch_matmul``.
    """
    n = lhs.ndim
    if n != rhs.ndim or n < 2:
        raise ArgumentError(
            f"lax.batch_matmul takes arrays of one rank of 2 or more; found shapes {lhs.shape} and "
            f"{rhs.shape}"
        )
    batch = tuple(range(n - 2))
    result: Tracer = dot_general(lhs, rhs, (((n - 1,), (n - 2,)), (batch, batch)), precision)
    return result
