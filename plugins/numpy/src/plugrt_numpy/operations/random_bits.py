"""Random numbers: ``rng_bit_generator``, bit for bit as in XLA, and ``rng``.

The generators are from Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011);
counters are numbered and words combined as in XLA (``xla/hlo/builder/lib/prng.cc``).
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from plugrt_numpy.data_types import (
    BOOL,
    Array,
    Dtype,
    Function,
    bit_width,
    bits_dtype,
    is_float,
)
from plugrt_numpy.operation import Lowering, Operation

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_THREEFRY_PARITY = 0x1BD11BDA
_PHILOX_MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_PHILOX_WEYL = np.uint32(0x9E3779B9), np.uint32(0xBB67AE85)


def _words(values: Any) -> tuple[Any, Any]:
    """Returns the low and the high 32 bits."""
    values = np.asarray(values, np.uint64)
    return values.astype(np.uint32), (values >> np.uint64(32)).astype(np.uint32)


def _join(low: Array, high: Array) -> Array:
    joined: Array = low.astype(np.uint64) | (high.astype(np.uint64) << np.uint64(32))
    return joined


def threefry(counters: Array, key: Any) -> tuple[Array, Array]:
    """Returns two words of 32 bits for each 64-bit counter (20 rounds of Threefry-2x32)."""
    keys = list(_words(key))
    keys.append(keys[0] ^ keys[1] ^ np.uint32(_THREEFRY_PARITY))
    low, high = _words(counters)
    low, high = low + keys[0], high + keys[1]
    for block in range(5):
        for rotation in _ROTATIONS[block % 2]:
            low = low + high
            high = (high << np.uint32(rotation)) | (high >> np.uint32(32 - rotation))
            high = high ^ low
        low = low + keys[(block + 1) % 3]
        high = high + keys[(block + 2) % 3] + np.uint32(block + 1)
    return low, high


def philox(low: Array, high: Array, key: Any) -> list[Array]:
    """Returns four words of 32 bits for each 128-bit counter (10 rounds of Philox-4x32)."""
    words: list[Any] = [*_words(low), *_words(high)]
    keys = list(_words(key))
    for _ in range(10):
        first, second = (
            words[2 * i].astype(np.uint64) * m for i, m in enumerate(_PHILOX_MULTIPLIERS)
        )
        low0, high0 = _words(first)
        low1, high1 = _words(second)
        words = [high1 ^ words[1] ^ keys[0], low1, high0 ^ words[3] ^ keys[1], low0]
        keys = [k + w for k, w in zip(keys, _PHILOX_WEYL, strict=True)]
    return words


def _threefry_bits(state: Array, shape: Sequence[int], bits: int) -> tuple[Array, Array]:
    """Returns the new state and words of 32 or 64 bits."""
    size = math.prod(shape)
    if bits == 64:
        counters = state[1] + np.arange(size, dtype=np.uint64)
        values = _join(*threefry(counters, state[0])).reshape(shape)
        return _advance(state, size), values
    # Pairs of words are neighbours along one dimension: the first even one, else the longest.
    sizes = list(shape) or [1]
    even = [d for d, n in enumerate(sizes) if n % 2 == 0]
    split = even[0] if even else sizes.index(max(sizes))
    half = [*sizes[:split], -(-sizes[split] // 2), *sizes[split + 1 :]]
    count = math.prod(half)
    pair = threefry(state[1] + np.arange(count, dtype=np.uint64), state[0])
    both = np.stack([word.reshape(half) for word in pair], split + 1)
    doubled = [*half[:split], 2 * half[split], *half[split + 1 :]]
    index = (slice(None),) * split + (slice(sizes[split]),)
    return _advance(state, count), both.reshape(doubled)[index].reshape(shape)


def _advance(state: Array, count: int) -> Array:
    return np.concatenate([state[:1], state[1:2] + np.uint64(count)])


def _philox_bits(state: Array, shape: Sequence[int], bits: int) -> tuple[Array, Array]:
    """As `_threefry_bits`. A state of two words has the counter's high word first."""
    size = math.prod(shape) * (bits // 32)
    low, high = (state[1], state[2]) if len(state) > 2 else (state[1], state[0])
    count = -(-size // 4)
    counters = low + np.arange(count + 1, dtype=np.uint64)
    carried = high + (counters < low).astype(np.uint64)
    words = np.stack(philox(counters[:-1], carried[:-1], state[0]), 1).reshape(-1)
    after = [state[0], counters[-1], carried[-1]][: len(state)]
    if bits == 64:
        words = _join(words[0::2], words[1::2])
    return np.array(after, np.uint64), words[: math.prod(shape)].reshape(shape)


_GENERATORS = {"THREE_FRY": _threefry_bits, "PHILOX": _philox_bits, "DEFAULT": _philox_bits}
"""The default is XLA's on CPUs."""


def _rng_bit_generator(op: Operation) -> Function:
    generate = _GENERATORS[op.word("rng_algorithm", "DEFAULT")]
    kind = op.result_types[1]
    bits = bit_width(kind.dtype)
    if kind.dtype == BOOL:
        op.refuse("it has no random booleans")

    def run(state: Array) -> tuple[Array, Array]:
        after, words = generate(np.asarray(state), kind.shape, max(bits, 32))
        if is_float(kind.dtype):
            return after, words.astype(bits_dtype(kind.dtype)).view(kind.dtype)
        return after, words.astype(kind.dtype)

    return run


_generator = np.random.default_rng()
# Process-wide: guards `_generator`, which programs on all threads draw from.
_lock = threading.Lock()


def _rng(op: Operation) -> Function:
    dtype = op.dtype
    draw = _normal if op.word("rng_distribution") == "NORMAL" else _uniform
    if draw is _normal and not is_float(dtype):
        op.refuse(f"normal numbers are floats, and {dtype.name} is none")

    def run(a: Any, b: Any, shape: Array) -> Array:
        with _lock:
            return draw(a, b, tuple(shape.tolist()), dtype)

    return run


def _normal(mean: Any, deviation: Any, shape: tuple[int, ...], dtype: Dtype) -> Array:
    return _generator.normal(float(mean), float(deviation), shape).astype(dtype)


def _uniform(low: Any, high: Any, shape: tuple[int, ...], dtype: Dtype) -> Array:
    """Returns numbers in [low, high)."""
    if dtype == BOOL:
        return _generator.integers(0, 2, shape).astype(BOOL)
    if not is_float(dtype):
        return _generator.integers(int(low), max(int(high), int(low) + 1), shape).astype(dtype)
    values = _generator.uniform(float(low), float(high), shape).astype(dtype)
    # Rounding to the dtype may give the upper bound, which is not in the interval.
    result: Array = np.where(values < high, values, low).astype(dtype)
    return result


OPERATIONS: dict[str, Lowering] = {
    "stablehlo.rng": _rng,
    "stablehlo.rng_bit_generator": _rng_bit_generator,
}
"""Operation name to lowering."""
