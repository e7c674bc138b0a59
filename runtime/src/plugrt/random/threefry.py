"""Threefry-2x32 with 20 rounds, the counter-based generator, on uint32 arrays of a trace.

From J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011); the results equal
Random123's and, with its default ``jax_threefry_partitionable=True``, those of ``jax.random``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from plugrt.tracing.emit import (
    active_trace,
    broadcast_to,
    concatenate,
    constant,
    convert,
    emit,
    full,
    hlo,
    iota,
    reshape,
    slice_,
    wrap_one,
)
from plugrt.tracing.tracer import Tracer

UINT32: np.dtype[Any] = np.dtype(np.uint32)
_UINT64: np.dtype[Any] = np.dtype(np.uint64)
_PARITY = 0x1BD11BDA
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def threefry2x32(key: tuple[Tracer, Tracer], x: Tracer, y: Tracer) -> tuple[Tracer, Tracer]:
    """Returns the two output words for the counter words ``x`` and ``y``, arrays of one shape.

    The words of the key are scalars.
    """
    shape = x.shape
    first, second = key
    third = emit(hlo.xor, emit(hlo.xor, first, second), constant(_PARITY, UINT32))
    schedule = [first, second, third]
    wide = [broadcast_to(k, shape) for k in schedule]
    x, y = emit(hlo.add, x, wide[0]), emit(hlo.add, y, wide[1])
    for group in range(5):
        for distance in _ROTATIONS[group % 2]:
            x = emit(hlo.add, x, y)
            y = emit(hlo.xor, x, _rotate(y, distance))
        x = emit(hlo.add, x, wide[(group + 1) % 3])
        injected = emit(hlo.add, schedule[(group + 2) % 3], constant(group + 1, UINT32))
        y = emit(hlo.add, y, broadcast_to(injected, shape))
    return x, y


def _rotate(x: Tracer, distance: int) -> Tracer:
    left = emit(hlo.shift_left, x, full(x.shape, distance, UINT32))
    right = emit(hlo.shift_right_logical, x, full(x.shape, 32 - distance, UINT32))
    rotated: Tracer = emit(hlo.or_, left, right)
    return rotated


def key_words(key: Tracer) -> tuple[Tracer, Tracer]:
    """Returns the two words of a key as scalars."""
    low, high = slice_(key, [0], [1], [1]), slice_(key, [1], [2], [1])
    return reshape(low, ()), reshape(high, ())


def make_counters(shape: tuple[int, ...]) -> tuple[Tracer, Tracer]:
    """Returns the high and low words of the numbers from 0, in row-major order, in a shape."""
    size = math.prod(shape)
    if size <= 1 << 32:
        return full(shape, 0, UINT32), reshape(iota((size,), 0, UINT32), shape)
    count = iota((size,), 0, _UINT64)
    high = emit(hlo.shift_right_logical, count, full((size,), 32, _UINT64))
    return reshape(convert(high, UINT32), shape), reshape(convert(count, UINT32), shape)


def random_bits(key: Tracer, width: int, shape: tuple[int, ...]) -> Tracer:
    """Returns unsigned integers of 8, 16, 32 or 64 random bits in a shape."""
    first, second = threefry2x32(key_words(key), *make_counters(shape))
    if width == 64:
        high, low = convert(first, _UINT64), convert(second, _UINT64)
        high = emit(hlo.shift_left, high, full(shape, 32, _UINT64))
        return emit(hlo.or_, high, low)
    return convert(emit(hlo.xor, first, second), f"uint{width}")


def split_key(key: Tracer, shape: tuple[int, ...]) -> Tracer:
    """Returns new keys in a shape, with a last axis of two words."""
    pair = threefry2x32(key_words(key), *make_counters(shape))
    return add_barrier(concatenate([reshape(w, (*shape, 1)) for w in pair], len(shape)))


def add_barrier(keys: Tracer) -> Tracer:
    """Returns keys behind an optimization barrier.

    Without it XLA recomputes a key for each element that depends on it: a program of three
    hashes took four times as long to compile.
    """
    return wrap_one(hlo.OptimizationBarrierOp([keys.value], loc=active_trace().location()))
