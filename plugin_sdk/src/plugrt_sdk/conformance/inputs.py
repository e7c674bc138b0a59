"""The inputs of checks: bit patterns of dtypes, lengths, forms of views, sizes of programs.

They are generated, so that checks do not depend on hand-picked numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import cache

import numpy as np

from plugrt_sdk.conformance.expect import Array
from plugrt_sdk.conformance.operation_cases import SHAPES
from plugrt_sdk.testing.program_text import named_dtype

_RANDOM_WORDS = 1009
"""A prime number, which no transfer size is a multiple of."""
LENGTHS = (*range(258), *(2**k + d for k in range(9, 22) for d in (-1, 0, 1)))
"""Numbers of elements: all small ones, and those next to powers of two up to 2 ** 21."""
BORDERS = tuple(sorted({2**k + d for k in range(3, 10) for d in (-1, 0, 1)}))
"""Sizes next to the borders of tiles, vectors and blocks, from 8 to 512."""
NARROW = re.compile(r"u?int[124]$|float[46]_")
"""Dtypes whose elements a library may pack into one byte."""
Shape = tuple[int, ...]
RANKS: tuple[Shape, ...] = ((), *SHAPES)
"""A shape of each rank from 0 to 8."""
SMALL: tuple[Shape, ...] = (*((n,) for n in range(258)), *((3, n) for n in BORDERS))
"""All small lengths, and last dimensions at the borders of tiles."""
_DIMENSIONS = (2, 3, 1, 4, 2, 1, 3, 2)


@cache
def patterns(dtype: str) -> Array:
    """Returns elements of a dtype with each bit set and clear, in many combinations.

    Dtypes of up to 16 bits: every bit pattern. Wider ones: each bit set or clear alone, zeros,
    infinities, NaNs with payloads, subnormal numbers, and a thousand random patterns.
    """
    kind = named_dtype(dtype)
    if kind.kind == "c":
        parts = patterns(f"float{kind.itemsize * 4}")
        other = np.roll(parts, len(parts) // 3)
        return np.stack((parts, other), -1).reshape(-1).view(kind)
    if dtype == "bool":
        return np.array([False, True])
    bits = 8 * kind.itemsize
    if narrow := re.match(r"(u?)int([124])$|float([46])_", dtype):
        bits = int(narrow[2] or narrow[3])
        low = -(1 << bits - 1) if dtype.startswith("int") else 0
        numbers = np.arange(low, low + (1 << bits))
        return numbers.astype(np.uint8).view(kind) if narrow[3] else numbers.astype(kind)
    if bits <= 16:
        return np.arange(1 << bits, dtype=f"u{kind.itemsize}").view(kind)
    return _wide_patterns(bits).view(kind)


_MANTISSAS = {32: 23, 64: 52}
"""The number of mantissa bits of a float, by its size."""


def _wide_patterns(bits: int) -> Array:
    """Returns bit patterns of 32 or 64 bits."""
    word, mantissa = np.dtype(f"u{bits // 8}"), _MANTISSAS[bits]
    ones = ~word.type(0)
    alone = word.type(1) << np.arange(bits, dtype=word)
    sign = alone[-1]
    infinity = ones >> word.type(1) >> word.type(mantissa) << word.type(mantissa)
    specials = np.array([0, ones, sign, infinity, infinity | sign], word)
    nans = (infinity | alone[:mantissa], sign | infinity | alone[:9])
    random = np.random.default_rng(bits).integers(0, ones, _RANDOM_WORDS, word, endpoint=True)
    return np.concatenate((specials, alone, ~alone, *nans, random))


def fill(dtype: str, shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """Returns an array of a dtype's patterns in random order, all of them if they fit."""
    chosen = patterns(dtype)
    count = math.prod(shape)
    order = random.permutation(len(chosen))[:count]
    more = random.integers(0, len(chosen), count - len(order))
    return chosen[np.concatenate((order, more))].reshape(shape)


def views(dtype: str, random: np.random.Generator) -> Iterator[tuple[str, Array]]:
    """Yields views of each rank from 0 to 8, with a description of each.

    Forms: whole; dimensions reversed, rotated and permuted; every second element; negative strides
    in one dimension and in all; stride 0 in the first, the last and all dimensions; no elements;
    several of these together.
    """
    for rank in range(9):
        for words, view in _forms(fill(dtype, _DIMENSIONS[:rank], random), random):
            yield f"of {rank} dimensions, {words}", view
        if rank:
            wide = fill(dtype, tuple(2 * n + 1 for n in _DIMENSIONS[: min(rank, 4)]), random)
            wide = wide.reshape(wide.shape + (1,) * (rank - wide.ndim))
            steps = wide[(slice(1, None, 2), slice(None, None, -2), slice(None, None, 3))[:rank]]
            yield f"of {rank} dimensions, with steps", steps
            yield (
                f"of {rank} dimensions, with steps, shuffled",
                steps.transpose(random.permutation(rank)),
            )


def _forms(whole: Array, random: np.random.Generator) -> Iterator[tuple[str, Array]]:
    rank = whole.ndim
    yield "whole", whole
    if not rank:
        return
    yield "reversed", whole.T
    yield "rotated", np.moveaxis(whole, 0, -1)
    yield "shuffled", whole.transpose(random.permutation(rank))
    yield "backwards", whole[(slice(None, None, -1),) * rank]
    axis = int(random.integers(rank))
    yield f"backwards in dimension {axis}", np.flip(whole, axis)
    yield "of one element", np.broadcast_to(whole[(0,) * rank], whole.shape)
    yield "of one part in the first dimension", np.broadcast_to(whole[:1], (3, *whole.shape[1:]))
    last = np.broadcast_to(whole[..., :1], (*whole.shape[:-1], 3))
    yield "of one part in the last dimension", last
    yield "without elements", whole[..., :0]
