"""The generators of random bits, by the dtype of the keys: Threefry-2x32 and the backend's own.

Threefry is counter-based, from J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"
(SC 2011), with 20 rounds; the results equal Random123's and, with its default
``jax_threefry_partitionable=True``, those in ``jax.random``. The backend's generator, XLA's
``rng_bit_generator``, makes the bits for ``rbg`` and ``unsafe_rbg``, which differ between backends
and versions. ``rbg`` splits keys by Threefry, each half by itself, ``unsafe_rbg`` by the backend's
generator.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from plugrt import array_api as _xp
from plugrt import lax as _lax
from plugrt.native.known_dtypes import KeyDtype, is_key_dtype
from plugrt.tracing.emit import (
    active_trace,
    broadcast_in_dim,
    broadcast_to,
    concatenate,
    constant,
    convert,
    emit,
    full,
    hlo,
    iota,
    keys_of,
    reshape,
    slice_,
    transpose,
    words_of,
    wrap_one,
)
from plugrt.tracing.tracer import Tracer

Shape = tuple[int, ...]

lax: Any = _lax
"""`plugrt.lax` without types, for tracers in operation bodies: its annotations exclude tracers."""
xp: Any = _xp
"""`plugrt.array_api`, likewise."""

_ROUNDS = 10
"""How many blocks of bits ``unsafe_rbg`` draws for each key."""

UINT32: np.dtype[Any] = np.dtype(np.uint32)
_UINT64: np.dtype[Any] = np.dtype(np.uint64)
_PARITY = 0x1BD11BDA
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def threefry2x32(key: tuple[Tracer, Tracer], x: Tracer, y: Tracer) -> tuple[Tracer, Tracer]:
    """Returns the two output words for the counter words ``x`` and ``y``, arrays of one shape.

    The words of the key are scalars, or of that shape.
    """
    shape = x.shape
    first, second = key
    third = emit(hlo.xor, emit(hlo.xor, first, second), full(first.shape, _PARITY, UINT32))
    schedule = [first, second, third]
    wide = [broadcast_to(k, shape) for k in schedule]
    x, y = emit(hlo.add, x, wide[0]), emit(hlo.add, y, wide[1])
    for group in range(5):
        for distance in _ROTATIONS[group % 2]:
            x = emit(hlo.add, x, y)
            y = emit(hlo.xor, x, _rotate(y, distance))
        x = emit(hlo.add, x, wide[(group + 1) % 3])
        injected = emit(hlo.add, schedule[(group + 2) % 3], full(first.shape, group + 1, UINT32))
        y = emit(hlo.add, y, broadcast_to(injected, shape))
    return x, y


def _rotate(x: Tracer, distance: int) -> Tracer:
    left = emit(hlo.shift_left, x, full(x.shape, distance, UINT32))
    right = emit(hlo.shift_right_logical, x, full(x.shape, 32 - distance, UINT32))
    rotated: Tracer = emit(hlo.or_, left, right)
    return rotated


def key_words(key: Tracer) -> tuple[Tracer, Tracer]:
    """Returns the two words of each key of an array, uint32[…, 2]."""
    *shape, _ = key.shape
    ones = [1] * key.ndim
    pair = [slice_(key, [*[0] * len(shape), i], [*shape, i + 1], ones) for i in range(2)]
    low, high = (reshape(word, shape) for word in pair)
    return low, high


def make_counters(shape: tuple[int, ...]) -> tuple[Tracer, Tracer]:
    """Returns the high and low words of the numbers from 0, in row-major order, in a shape."""
    size = math.prod(shape)
    if size <= 1 << 32:
        return full(shape, 0, UINT32), reshape(iota((size,), 0, UINT32), shape)
    count = iota((size,), 0, _UINT64)
    high = emit(hlo.shift_right_logical, count, full((size,), 32, _UINT64))
    return reshape(convert(high, UINT32), shape), reshape(convert(count, UINT32), shape)


def hash_counters(key: Tracer, shape: tuple[int, ...]) -> tuple[Tracer, Tracer]:
    """Returns the output words for the counters of a shape, for each key of an array."""
    words, counters = key_words(key), make_counters(shape)
    several = words[0].shape
    if several:
        whole = (*several, *shape)
        first, second = (broadcast_in_dim(w, whole, range(len(several))) for w in words)
        words = first, second
        first, second = (broadcast_to(c, whole) for c in counters)
        counters = first, second
    return threefry2x32(words, *counters)


def make_seed(seed: Tracer) -> Tracer:
    """Returns the key of an integer: its high word (0 for 32 bits) and its low word."""
    high = constant(0, UINT32)
    if seed.dtype.itemsize == 8:
        shifted = emit(hlo.shift_right_logical, seed, full((), 32, seed.dtype))
        high = convert(shifted, UINT32)
    return _join(high, convert(seed, UINT32))


def _hash_bits(key: Tracer, width: int, shape: tuple[int, ...]) -> Tracer:
    """Returns unsigned integers of 8, 16, 32 or 64 random bits in a shape, for each key."""
    first, second = hash_counters(key, shape)
    if width == 64:
        high, low = convert(first, _UINT64), convert(second, _UINT64)
        high = emit(hlo.shift_left, high, full(high.shape, 32, _UINT64))
        return emit(hlo.or_, high, low)
    return convert(emit(hlo.xor, first, second), f"uint{width}")


def _hash_keys(key: Tracer, shape: tuple[int, ...]) -> Tracer:
    """Returns new keys in a shape, with a last axis of two words, for each key."""
    return _join(*hash_counters(key, shape))


def _hash_data(key: Tracer, data: Tracer) -> Tracer:
    """Returns the key that a key and a 32-bit integer give together."""
    return _join(*threefry2x32(key_words(key), constant(0, UINT32), data))


def _join(first: Tracer, second: Tracer) -> Tracer:
    shape = first.shape
    return add_barrier(concatenate([reshape(w, (*shape, 1)) for w in (first, second)], len(shape)))


def add_barrier(keys: Tracer) -> Tracer:
    """Returns keys behind an optimization barrier.

    Without it XLA recomputes a key for each element that depends on it: a program of three
    hashes took four times as long to compile.
    """
    return wrap_one(hlo.OptimizationBarrierOp([keys.value], loc=active_trace().location()))


def make_key(seed: Tracer, dtype: KeyDtype) -> Tracer:
    """Returns the key of an integer."""
    return keys_of(_seed(seed, dtype), dtype)


def _seed(seed: Tracer, dtype: KeyDtype) -> Tracer:
    half = make_seed(seed)
    return half if dtype.words == 2 else concatenate([half, half], 0)


def random_bits(key: Tracer, width: int, shape: Shape) -> Tracer:
    """Returns unsigned integers of 8, 16, 32 or 64 random bits in a shape.

    An array of Threefry's keys gives them for each key, along further leading dimensions.
    """
    words = words_of(key)
    if _dtype(key).words == 2:
        return _hash_bits(words, width, shape)
    drawn: Tracer = lax.rng_bit_generator(words, shape, f"uint{width}")[1]
    return drawn


def split_key(key: Tracer, shape: Shape) -> Tracer:
    """Returns new keys in a shape; for an array of Threefry's keys as with `random_bits`."""
    dtype, words = _dtype(key), words_of(key)
    if dtype.impl == "threefry2x32":
        made = _hash_keys(words, shape)
    elif dtype.impl == "rbg":
        halves = _hash_keys(reshape(words, (2, 2)), shape)
        ndim = len(shape)
        made = reshape(transpose(halves, [*range(1, ndim + 1), 0, ndim + 1]), (*shape, 4))
    else:
        count = math.prod(shape)
        blocks = lax.rng_bit_generator(words, (_ROUNDS * count, 4), UINT32)[1]
        made = reshape(slice_(blocks, [0, 0], [*blocks.shape], [_ROUNDS, 1]), (*shape, 4))
    return keys_of(made, dtype)


def fold_key(key: Tracer, data: Tracer) -> Tracer:
    """Returns the key that a key and the low 32 bits of an integer give together."""
    dtype, words, data = _dtype(key), words_of(key), convert(data, UINT32)
    if dtype.impl == "threefry2x32":
        made = _hash_data(words, data)
    elif dtype.impl == "rbg":
        pairs = [slice_(words, [i], [i + 2], [1]) for i in (0, 2)]
        made = concatenate([_hash_data(pair, data) for pair in pairs], 0)
    else:
        blocks = lax.rng_bit_generator(_seed(data, dtype), (_ROUNDS, 4), UINT32)[1]
        last = reshape(slice_(blocks, [_ROUNDS - 1, 0], [_ROUNDS, 4], [1, 1]), (4,))
        made = emit(hlo.xor, words, last)
    return keys_of(made, dtype)


def read_row(x: Tracer, i: int) -> Tracer:
    """Returns ``x[i]``, also of keys."""
    if is_key_dtype(x.dtype):
        return keys_of(read_row(words_of(x), i), _dtype(x))
    taken = slice_(x, [i, *[0] * (x.ndim - 1)], [i + 1, *x.shape[1:]], [1] * x.ndim)
    return reshape(taken, x.shape[1:])


def split_in(key: Tracer, count: int) -> list[Tracer]:
    """Returns so many new keys; for an array of Threefry's keys, as many arrays."""
    keys = split_key(key, (count,))
    if not key.shape:
        return [read_row(keys, i) for i in range(count)]
    words, ndim = words_of(keys), key.ndim
    ends = [(*key.shape, i + 1, words.shape[-1]) for i in range(count)]
    rows = [slice_(words, [*[0] * ndim, i, 0], ends[i], [1] * words.ndim) for i in range(count)]
    return [keys_of(reshape(row, (*key.shape, words.shape[-1])), _dtype(key)) for row in rows]


def _dtype(key: Tracer) -> KeyDtype:
    dtype: Any = key.dtype
    found: KeyDtype = dtype
    return found


__all__ = [
    "fold_key", "lax", "make_key", "random_bits", "read_row", "split_in", "split_key", "xp",
]  # fmt: skip
