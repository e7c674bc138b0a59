"""`scaled_dot`: products of arrays with one factor for a block of their elements."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np

from plugrt.array_api.dtypes import as_dtype
from plugrt.errors import ArgumentError, ShapeError
from plugrt.lax.composites import composite
from plugrt.lax.contraction import DotDimensionNumbers, dot_general, read_pairs
from plugrt.lax.dimension_arguments import normalize_dimensions
from plugrt.tracing.emit import broadcast_in_dim, convert, emit, full, hlo, reshape, strong
from plugrt.tracing.operation import operation
from plugrt.tracing.tracer import Tracer
from plugrt.typing import DTypeLike

_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_FACTOR = np.dtype(ml_dtypes.float8_e8m0fnu)


@operation(static=("dimension_numbers", "preferred_element_type"), weak_by="none")
def scaled_dot(
    lhs: Tracer,
    rhs: Tracer,
    *,
    lhs_scale: Tracer | None = None,
    rhs_scale: Tracer | None = None,
    dimension_numbers: DotDimensionNumbers | None = None,
    preferred_element_type: DTypeLike | None = None,
) -> Tracer:
    """Returns `dot_general` of ``lhs * lhs_scale`` and ``rhs * rhs_scale``, computed in bfloat16.

    A scale has the sizes of its operand, but contracting dimensions are smaller by an integer
    factor of at least two: it has one number for each block. None is 1. Without
    ``dimension_numbers`` it is the product of matrices in the last two dimensions. The result has
    ``preferred_element_type``, bfloat16 by default. Any dtypes. It is the composite
    ``xla.scaled_dot``, which compilers for devices with such units implement. Raises
    `ArgumentError` for operands of fewer than two dimensions, `ArgumentTypeError` for numbers that
    are no two pairs, `AxisError` for dimensions out of range, and `ShapeError` for sizes that do
    not fit. As ``jax.lax.scaled_dot``.

    >>> x = xp.ones((2, 64), dtype=xp.float8_e4m3fn)
    >>> scale = xp.full((2, 2), 0.5, dtype=xp.float8_e8m0fnu)
    >>> lax.scaled_dot(x, x.T, lhs_scale=scale, preferred_element_type=xp.float32)
    Array([[32., 32.],
           [32., 32.]], dtype=float32)
    """
    if dimension_numbers is None:
        n = lhs.ndim
        if n < 2 or rhs.ndim != n:
            raise ArgumentError(
                "lax.scaled_dot takes arrays of one rank of 2 or more; found shapes "
                f"{lhs.shape} and {rhs.shape}; others need dimension_numbers"
            )
        batch = tuple(range(n - 2))
        dimension_numbers = ((n - 1,), (n - 2,)), (batch, batch)
    numbers = [
        [[*normalize_dimensions("scaled_dot", pair[i], x.ndim)] for i, x in enumerate((lhs, rhs))]
        for pair in read_pairs("scaled_dot", dimension_numbers)
    ]
    left, right = numbers[0]
    wanted = _BFLOAT16 if preferred_element_type is None else as_dtype(preferred_element_type)
    operands = [
        *map(strong, (lhs, rhs)),
        _read_scale("lhs", lhs, lhs_scale, left),
        _read_scale("rhs", rhs, rhs_scale, right),
    ]
    product = composite(_decompose, "xla.scaled_dot")
    result: Tracer = product(*operands, dimension_numbers=numbers, preferred_element_type=wanted)
    return result


def _decompose(
    lhs: Tracer, rhs: Tracer, lhs_scale: Tracer, rhs_scale: Tracer, *,
    dimension_numbers: object, preferred_element_type: np.dtype[np.generic],
) -> Tracer:  # fmt: skip
    scaled = [
        emit(hlo.multiply, convert(x, _BFLOAT16), convert(_spread(s, x.shape), _BFLOAT16))
        for x, s in ((lhs, lhs_scale), (rhs, rhs_scale))
    ]
    result: Tracer = dot_general(
        *scaled, dimension_numbers, preferred_element_type=preferred_element_type
    )
    return convert(result, preferred_element_type)


def _read_scale(name: str, x: Tracer, scale: Tracer | None, contracting: Sequence[int]) -> Tracer:
    """Returns the scale of an operand, ones by default; checks its shape."""
    along = tuple(contracting)
    if scale is None:
        shape = tuple(1 if d in along else n for d, n in enumerate(x.shape))
        return full(shape, 1, _FACTOR)
    fits = scale.ndim == x.ndim and all(
        (k and n % k == 0 and n // k >= 2) if d in along else n == k
        for d, (n, k) in enumerate(zip(x.shape, scale.shape, strict=True))
    )
    if not fits:
        raise ShapeError(
            f"{name}_scale of lax.scaled_dot has shape {scale.shape} for {name} of shape "
            f"{x.shape}; it has the same sizes, but along {along} some that divide them, at "
            "least by 2"
        )
    return strong(scale)


def _spread(scale: Tracer, shape: tuple[int, ...]) -> Tracer:
    """Returns the scale with each factor repeated for the elements of its block."""
    for d, (n, k) in enumerate(zip(shape, scale.shape, strict=True)):
        if n != k:
            blocks = (*scale.shape[: d + 1], n // k, *scale.shape[d + 1 :])
            places = [i for i in range(len(blocks)) if i != d + 1]
            wide = broadcast_in_dim(scale, blocks, places)
            scale = reshape(wide, (*scale.shape[:d], n, *scale.shape[d + 1 :]))
    return scale
