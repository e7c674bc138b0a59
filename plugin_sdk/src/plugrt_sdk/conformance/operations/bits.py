"""Operations on the bits of integers: shifts, and counts of bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from plugrt_sdk.conformance.expect import Array
from plugrt_sdk.conformance.operations.sample import INTEGERS, Samples
from plugrt_sdk.testing.program_text import ProgramText, typed

SAMPLES = Samples()
_SHAPE = (5, 13)


def _any_bits(random: np.random.Generator, dtype: str) -> Array:
    """Returns integers of each number of digits; one has no bit set, and one has all."""
    width = np.dtype(dtype).itemsize * 8
    values = random.integers(0, 1 << 63, _SHAPE, np.uint64) * np.uint64(2) + np.uint64(1)
    digits = random.permutation(np.arange(np.prod(_SHAPE)) % (width + 1)).reshape(_SHAPE)
    kept = [int(v) >> (64 - int(n)) for v, n in zip(values.flat, digits.flat, strict=True)]
    kept[:2] = 0, (1 << width) - 1
    return np.array(kept, np.uint64).astype(f"uint{width}").view(dtype).reshape(_SHAPE)


def _numbers(x: Array) -> list[int]:
    """Returns the bits of each element, as a number that is not negative."""
    return [int(v) for v in x.view(f"uint{x.itemsize * 8}").flat]


def _from_numbers(numbers: list[int], like: Array) -> Array:
    width = like.itemsize * 8
    kept = [n & ((1 << width) - 1) for n in numbers]
    return np.array(kept, np.uint64).astype(f"uint{width}").view(like.dtype).reshape(like.shape)


Shift = Callable[[int, int, int], int]
"""Shifts an element, given as unsigned bits and as a signed number, by a number of bits."""
_SHIFTS: dict[str, Shift] = {
    "shift_left": lambda bits, signed, by: bits << by,
    "shift_right_logical": lambda bits, signed, by: bits >> by,
    "shift_right_arithmetic": lambda bits, signed, by: signed >> by,
}


def _shift(name: str) -> Callable[[ProgramText, str, np.random.Generator], Any]:
    def write(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
        x = _any_bits(random, dtype)
        width = x.itemsize * 8
        by = random.integers(0, width + 1, _SHAPE).astype(dtype)
        by.flat[:2] = 0, width
        p.apply(name, [p.argument(x), p.argument(by)], [typed(_SHAPE, dtype)])
        signed = [int(v) for v in x.view(f"int{width}").flat]
        found = map(_SHIFTS[name], _numbers(x), signed, by.ravel().tolist())
        return [_from_numbers(list(found), x)]

    write.__doc__ = "By each number of bits, none and all of them included"
    return write


for _name in _SHIFTS:
    SAMPLES.add(_name, INTEGERS)(_shift(_name))


@SAMPLES.add("count_leading_zeros", INTEGERS)
def count_leading_zeros(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """The number of zeros before the first one, from none to as many as there are bits"""
    x = _any_bits(random, dtype)
    p.apply("count_leading_zeros", [p.argument(x)], [typed(_SHAPE, dtype)])
    width = x.itemsize * 8
    return [_from_numbers([width - n.bit_length() for n in _numbers(x)], x)]


@SAMPLES.add("popcnt", INTEGERS)
def popcnt(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """The number of ones, from none to as many as there are bits"""
    x = _any_bits(random, dtype)
    p.apply("popcnt", [p.argument(x)], [typed(_SHAPE, dtype)])
    return [_from_numbers([n.bit_count() for n in _numbers(x)], x)]
