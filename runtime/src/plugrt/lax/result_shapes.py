"""Shapes of convolutions and of windows, computed without arrays: `conv_shape_tuple` and others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plugrt.errors import ArgumentError, ShapeError
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.lax.convolution import ConvDimensionNumbers, conv_dimension_numbers
from plugrt.lax.convolution_forms import transpose_padding
from plugrt.lax.dimension_arguments import per_dimension
from plugrt.lax.windowed_reductions import Padding, compute_padding, read_windows
from plugrt.typing import DTypeLike

Shape = tuple[int, ...]


@with_argument_errors
def conv_general_permutations(
    dimension_numbers: Sequence[str],
) -> tuple[Sequence[int], Sequence[int], Sequence[int]]:
    """Returns the orders of dimensions that bring lhs, rhs and result into (N, C, spatial…).

    ``dimension_numbers`` are three strings, as of `conv_dimension_numbers`; of rhs the order is (O,
    I, spatial…). Raises `ArgumentError` for strings that do not name each dimension once. As
    ``jax.lax.conv_general_permutations``.

    >>> lax.conv_general_permutations(("NHWC", "HWIO", "NHWC"))
    ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    """
    shape = (1,) * len(dimension_numbers[0])
    numbers = conv_dimension_numbers(shape, shape, list(dimension_numbers))
    return numbers.lhs_spec, numbers.rhs_spec, numbers.out_spec


@with_argument_errors
def conv_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    strides: Sequence[int],
    pads: Padding,
    batch_group_count: int = 1,
) -> Shape:
    """Returns the shape of a convolution of (N, C, spatial…) with (O, I, spatial…).

    Raises `ShapeError` for other ranks and a batch that does not divide, and `ArgumentError` for
    strides or padding of another length. As ``jax.lax.conv_shape_tuple``.

    >>> lax.conv_shape_tuple((1, 3, 8, 8), (5, 3, 3, 3), (1, 2), "SAME")
    (1, 5, 8, 4)
    """
    function = "conv_shape_tuple"
    conv_dimension_numbers(lhs_shape, rhs_shape, None)
    steps = per_dimension(function, "strides", strides, len(lhs_shape) - 2)
    lengths, windows = lhs_shape[2:], rhs_shape[2:]
    padded = compute_padding(function, pads, lengths, windows, steps)
    if any(n + sum(p) < 0 for n, p in zip(lengths, padded, strict=True)):
        raise ShapeError(
            f"padding {padded} of {function} removes more than lhs of shape {tuple(lhs_shape)} has"
        )
    if batch_group_count < 1 or lhs_shape[0] % batch_group_count:
        raise ShapeError(
            f"the batch of lhs {tuple(lhs_shape)} is not a multiple of {batch_group_count} groups"
        )
    spatial = (
        max((n + sum(p) - w) // s + 1, 0)
        for n, p, w, s in zip(lengths, padded, windows, steps, strict=True)
    )
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *spatial)


@with_argument_errors
def conv_general_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    dimension_numbers: Sequence[str],
) -> Shape:
    """Returns the shape of a convolution with these ``dimension_numbers``.

    Raises the errors of `conv_general_permutations` and `conv_shape_tuple`. As
    ``jax.lax.conv_general_shape_tuple``.
    """
    numbers = conv_dimension_numbers(lhs_shape, rhs_shape, list(dimension_numbers))
    lhs, rhs = _take(lhs_shape, numbers.lhs_spec), _take(rhs_shape, numbers.rhs_spec)
    return _put(conv_shape_tuple(lhs, rhs, window_strides, padding), numbers)


@with_argument_errors
def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    dimension_numbers: Sequence[str],
) -> Shape:
    """Returns the shape of a `conv_transpose` with these ``dimension_numbers``.

    Raises the errors of `conv_general_permutations` and `conv_shape_tuple`. As
    ``jax.lax.conv_transpose_shape_tuple``.
    """
    numbers = conv_dimension_numbers(lhs_shape, rhs_shape, list(dimension_numbers))
    lhs, rhs = _take(lhs_shape, numbers.lhs_spec), _take(rhs_shape, numbers.rhs_spec)
    function = "conv_transpose_shape_tuple"
    steps = per_dimension(function, "window_strides", window_strides, len(lhs) - 2)
    if isinstance(padding, str):
        padding = transpose_padding(padding, rhs[2:], steps)
    padded = compute_padding(function, padding, lhs[2:], rhs[2:], steps)
    spatial = (
        (n - 1) * s - k + 2 + sum(p)
        for n, s, k, p in zip(lhs[2:], steps, rhs[2:], padded, strict=True)
    )
    return _put((lhs[0], rhs[0], *spatial), numbers)


@with_argument_errors
def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Shape:
    """Returns the shape of a `reduce_window`. Raises as it does.

    As ``jax.lax.reduce_window_shape_tuple``.
    """
    return read_windows(
        tuple(operand_shape), window_dimensions, window_strides, padding, base_dilation,
        window_dilation,
    ).shape  # fmt: skip


@with_argument_errors
def padtype_to_pads(
    in_shape: Sequence[int],
    window_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str,
) -> list[tuple[int, int]]:
    """Returns the padding (before, after) of each dimension for 'SAME', 'SAME_LOWER' or 'VALID'.

    Raises `ArgumentError` for another padding. As ``jax.lax.padtype_to_pads``.

    >>> lax.padtype_to_pads((8, 8), (3, 3), (1, 2), "SAME")
    [(1, 1), (0, 1)]
    """
    name = getattr(padding, "name", padding)
    if not isinstance(name, str):
        raise ArgumentError(
            f"padding of padtype_to_pads is 'SAME', 'SAME_LOWER' or 'VALID'; got {padding!r:.60}"
        )
    return compute_padding("padtype_to_pads", name, in_shape, window_shape, window_strides)


@with_argument_errors
def shape_as_value(shape: Sequence[int]) -> np.ndarray[tuple[int], np.dtype[np.int32 | np.int64]]:
    """Returns a shape as a vector of integers: int32, or int64 if a dimension needs it.

    Raises `ArgumentTypeError` for an object that is no shape. As ``jax.lax.shape_as_value``.

    >>> lax.shape_as_value((2, 3))
    array([2, 3], dtype=int32)
    """
    sizes = per_dimension("shape_as_value", "shape", shape, len(shape))
    wide = max(sizes, default=0) > np.iinfo(np.int32).max
    dtype: DTypeLike = np.int64 if wide else np.int32
    return np.asarray(sizes, dtype)


def _take(shape: Sequence[int], order: Sequence[int]) -> Shape:
    return tuple(shape[d] for d in order)


def _put(shape: Sequence[int], numbers: ConvDimensionNumbers) -> Shape:
    return tuple(shape[numbers.out_spec.index(d)] for d in range(len(shape)))
