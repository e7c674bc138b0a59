"""`dot_general` and `dot`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from plugrt.array_api.dtypes import as_dtype
from plugrt.errors import ArgumentError, ShapeError
from plugrt.interface import TensorType
from plugrt.lax.dimension_arguments import normalize_dimensions
from plugrt.lax.precision import PrecisionLike, precision_config
from plugrt.tracing.emit import convert, emit, hlo, with_weakness
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import dtype_kind, itemsize_bits
from plugrt.tracing.tracer import Tracer
from plugrt.typing import DTypeLike

DotDimensionNumbers: TypeAlias = tuple[
    tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
]
"""((contracting dimensions of lhs, of rhs), (batch dimensions of lhs, of rhs))."""


@operation(static=("dimension_numbers", "precision", "preferred_element_type"), weak_by="body")
def dot_general(
    lhs: Tracer,
    rhs: Tracer,
    dimension_numbers: DotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Tracer:
    """Returns products summed over contracting dimensions, for each place of the batch dimensions.

    Of dtypes that differ both take the higher, as XLA orders them: complex before real, then by the
    range of exponents, the digits and the bits; weak ones count as any. The result has the batch
    dimensions, then the others of ``lhs``, then those of ``rhs``; it is weak where both are. Sums
    are in ``preferred_element_type``, that of the operands unless given. Numeric dtypes and bool.
    Raises `ShapeError` where the sizes of paired dimensions differ, `AxisError` for a dimension out
    of range. As ``jax.lax.dot_general``.

    >>> x, y = xp.ones((5, 2, 3)), xp.ones((5, 3, 4))
    >>> lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,)))).shape
    (5, 2, 4)
    """
    common = max(lhs.dtype, rhs.dtype, key=_rank_precision)
    is_weak = lhs.weak and rhs.weak
    lhs, rhs = convert(lhs, common), convert(rhs, common)
    (contract, batch) = dimension_numbers
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
    dtype = lhs.dtype if preferred_element_type is None else as_dtype(preferred_element_type)
    result: Tracer = emit(
        hlo.dot_general,
        lhs,
        rhs,
        result=TensorType(tuple(shape), dtype),
        dot_dimension_numbers=hlo.DotDimensionNumbers.get(
            list(sides[0][1]), list(sides[1][1]), list(sides[0][0]), list(sides[1][0])
        ),
        precision_config=precision_config(precision),
    )
    return with_weakness(result, is_weak)


def _rank_precision(dtype: np.dtype[Any]) -> tuple[bool, int, int, int, bool]:
    """Returns what XLA's ``HigherPrecisionType`` orders dtypes by."""
    kind = dtype_kind(dtype)
    if kind not in "fc":
        return False, -1, -1, 1 if kind == "b" else itemsize_bits(dtype), kind != "u"
    info: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    return kind == "c", info.maxexp, info.nmant, info.bits, True


@operation(static=("dimension_numbers", "precision", "preferred_element_type"), weak_by="body")
def dot(
    lhs: Tracer,
    rhs: Tracer,
    *,
    dimension_numbers: DotDimensionNumbers | None = None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Tracer:
    """Returns the product of two vectors or matrices, or what `dot_general` gives with numbers.

    Dtypes that differ are promoted. Raises `ArgumentError` for other ranks and `ShapeError` where
    the contracted sizes differ. As ``jax.lax.dot``.
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
