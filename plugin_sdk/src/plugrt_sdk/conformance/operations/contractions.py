"""Samples of dot_general and convolution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from plugrt_sdk.conformance.expect import Array
from plugrt_sdk.conformance.operations.sample import COMPLEX, NUMBERS, Samples, whole, wide
from plugrt_sdk.testing.program_text import ProgramText, i64s, named_dtype, typed

SAMPLES = Samples()
_PRODUCTS = (*NUMBERS, *COMPLEX)
HIGHEST = "precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]"
"""For hardware that multiplies float32 in fewer bits by default."""


def _dot(left: str, right: str) -> str:
    return f"dot_dimension_numbers = #stablehlo.dot<{left}, {right}>, {HIGHEST}"


@SAMPLES.add("dot_general", _PRODUCTS)
def matrix_product(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """The product of two matrices"""
    x, y = whole(random, (4, 5), dtype), whole(random, (5, 3), dtype)
    p.apply("dot_general", [p.argument(x), p.argument(y)], [typed((4, 3), dtype)],
            _dot("lhs_contracting_dimensions = [1]",
                 "rhs_contracting_dimensions = [0]"))  # fmt: skip
    return [(wide(x) @ wide(y)).astype(x.dtype)]


@SAMPLES.add("dot_general", _PRODUCTS, variant="batched")
def batched_product(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Products of a batch of matrices, whose dimensions are in an unusual order"""
    x, y = whole(random, (4, 2, 5), dtype), whole(random, (5, 3, 2), dtype)
    p.apply("dot_general", [p.argument(x), p.argument(y)], [typed((2, 4, 3), dtype)],
            _dot("lhs_batching_dimensions = [1], rhs_batching_dimensions = [2]",
                 "lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]"))  # fmt: skip
    return [np.einsum("mbk,knb->bmn", wide(x), wide(y)).astype(x.dtype)]


_WIDER = {"bfloat16": "float32", "int8": "int32", "uint8": "uint32"}


@SAMPLES.add("dot_general", tuple(_WIDER), variant="wider")
def wider_product(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """A product whose sums are in a wider dtype"""
    x, y = (
        (random.integers(0, 100, shape)).astype(named_dtype(dtype)) for shape in ((3, 40), (40, 2))
    )
    p.apply("dot_general", [p.argument(x), p.argument(y)], [typed((3, 2), _WIDER[dtype])],
            _dot("lhs_contracting_dimensions = [1]",
                 "rhs_contracting_dimensions = [0]"))  # fmt: skip
    return [(x.astype(np.int64) @ y.astype(np.int64)).astype(_WIDER[dtype])]


@SAMPLES.add("dot_general", ("float32",), variant="outer", interpreted=False)
def outer_product(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """A product that sums over nothing, and one over no elements, which is zero"""
    x, y = whole(random, (4,), dtype), whole(random, (3,), dtype)
    none = "lhs_contracting_dimensions = [], rhs_contracting_dimensions = []"
    p.apply("dot_general", [p.argument(x), p.argument(y)], [typed((4, 3), dtype)],
            f"dot_dimension_numbers = #stablehlo.dot<{none}>, {HIGHEST}")  # fmt: skip
    empty = [p.argument(np.zeros(shape, dtype)) for shape in ((2, 0), (0, 3))]
    p.apply("dot_general", empty, [typed((2, 3), dtype)],
            _dot("lhs_contracting_dimensions = [1]",
                 "rhs_contracting_dimensions = [0]"))  # fmt: skip
    return np.outer(x, y), np.zeros((2, 3), dtype)


Pairs = Sequence[tuple[int, int]]


def _spread(x: Array, steps: Sequence[int], axes: Sequence[int]) -> Array:
    """Inserts zeros between the elements of these axes."""
    shape = [n if a not in axes else (n - 1) * steps[axes.index(a)] + 1
             for a, n in enumerate(x.shape)]  # fmt: skip
    found = np.zeros(shape, x.dtype)
    found[tuple(slice(None, None, steps[axes.index(a)] if a in axes else 1)
                for a in range(x.ndim))] = x  # fmt: skip
    return found


def convolve(
    x: Array, kernel: Array, strides: Sequence[int], padding: Pairs, base: Sequence[int],
    window: Sequence[int], groups: int,
) -> Array:  # fmt: skip
    """Convolves ``x[batch, y, x, feature]`` with ``kernel[y, x, in, out]``."""
    x = np.pad(_spread(x, base, (1, 2)), ((0, 0), *padding, (0, 0)))
    kernel = _spread(kernel, window, (0, 1))
    height, width, taken, given = kernel.shape
    windows = np.lib.stride_tricks.sliding_window_view(x, (height, width), (1, 2))
    windows = windows[:, :: strides[0], :: strides[1]]
    parts = [
        np.einsum(
            "byxihw,hwio->byxo",
            windows[:, :, :, g * taken : (g + 1) * taken],
            kernel[..., g * (given // groups) : (g + 1) * (given // groups)],
        )
        for g in range(groups)
    ]
    return np.concatenate(parts, -1)


def _pairs(padding: Pairs) -> str:
    rows = ", ".join(f"[{low}, {high}]" for low, high in padding)
    return f"padding = dense<[{rows}]> : tensor<{len(padding)}x2xi64>"


def _write_convolution(
    p: ProgramText, dtype: str, random: np.random.Generator, groups: int, strides: Sequence[int],
    padding: Pairs, base: Sequence[int], window: Sequence[int],
) -> Any:  # fmt: skip
    x, kernel = whole(random, (2, 7, 6, 4), dtype), whole(random, (3, 2, 4 // groups, 6), dtype)
    found = convolve(wide(x), wide(kernel), strides, padding, base, window, groups)
    p.apply(
        "convolution", [p.argument(x), p.argument(kernel)], [typed(found.shape, dtype)],
        "dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, "
        f"window_strides = {i64s(*strides)}, {_pairs(padding)}, lhs_dilation = {i64s(*base)}, "
        f"rhs_dilation = {i64s(*window)}, window_reversal = array<i1: false, false>, "
        f"feature_group_count = {groups} : i64, batch_group_count = 1 : i64, {HIGHEST}",
    )  # fmt: skip
    return [found]


@SAMPLES.add("convolution", _PRODUCTS)
def convolution(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Two dimensions, with padding"""
    return _write_convolution(p, dtype, random, 1, (1, 1), ((1, 1), (0, 1)), (1, 1), (1, 1))


@SAMPLES.add("convolution", ("float32", "bfloat16"), variant="strided")
def strided_convolution(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """With strides, and dilated kernels"""
    return _write_convolution(p, dtype, random, 1, (2, 1), ((1, 2), (3, 1)), (1, 1), (2, 3))


@SAMPLES.add("convolution", ("float32", "bfloat16"), variant="transposed")
def transposed_convolution(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """With zeros between the elements, as gradients have them"""
    return _write_convolution(p, dtype, random, 1, (1, 1), ((2, 2), (1, 1)), (2, 3), (1, 1))


@SAMPLES.add("convolution", ("float32", "bfloat16"), variant="grouped")
def grouped_convolution(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Of two groups of features"""
    return _write_convolution(p, dtype, random, 2, (1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1))
