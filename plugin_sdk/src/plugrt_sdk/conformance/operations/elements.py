"""Operations that select elements, and that make and split complex numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrt_sdk.conformance.operations.sample import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    MOVED,
    NUMBERS,
    Samples,
    numbered,
    whole,
    wide,
)
from plugrt_sdk.testing.program_text import ProgramText, named_dtype, typed

SAMPLES = Samples()
_COMPLEX = {"float32": "complex64", "float64": "complex128"}


@SAMPLES.add("select", MOVED)
def select(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """One of two by a boolean for each element, and by one for all"""
    x, y = (numbered(random, (4, 5), dtype) for _ in range(2))
    each, one = random.integers(0, 2, (4, 5)).astype(bool), np.bool_(False)
    operands = [p.argument(x), p.argument(y)]
    for which in (each, one):
        p.apply("select", [p.argument(which), *operands], [typed((4, 5), dtype)])
    return np.where(each, x, y), y


@SAMPLES.add("clamp", NUMBERS)
def clamp(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Between scalars, and between arrays"""
    x = numbered(random, (4, 5), dtype)
    low, high = named_dtype(dtype).type(5), named_dtype(dtype).type(12)
    lows = (low + whole(random, (4, 5), "uint8")).astype(x.dtype)
    a, kind = p.argument(x), typed((4, 5), dtype)
    p.apply("clamp", [p.argument(low), a, p.argument(high)], [kind])
    p.apply("clamp", [p.argument(lows), a, p.argument(np.full_like(x, high))], [kind])
    return np.clip(wide(x), 5, 12), np.clip(wide(x), wide(lows), 12)


@SAMPLES.add("complex", tuple(_COMPLEX))
def complex_(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Numbers of real and imaginary parts"""
    real, imag = (numbered(random, (3, 5), dtype) for _ in range(2))
    p.apply("complex", [p.argument(real), p.argument(imag)], [typed((3, 5), _COMPLEX[dtype])])
    return [real + 1j * imag]


def _part(name: str) -> Any:
    def write(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
        x = numbered(random, (3, 5), dtype)
        found = getattr(x, name)
        p.apply(name, [p.argument(x)], [typed((3, 5), found.dtype.name)])
        return [np.array(found, found.dtype).view(f"u{found.itemsize}").view(found.dtype)]

    write.__doc__ = f"The {name} parts of complex numbers"
    return write


for _name in ("real", "imag"):
    SAMPLES.add(_name, COMPLEX)(_part(_name))


@SAMPLES.add("power", INTEGERS)
def power(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Powers of integers from the zeroth, which of zero is one, to the fifth, which may wrap"""
    low = 0 if dtype.startswith("u") else -9
    x = random.integers(low, 10, (5, 13)).astype(dtype)
    y = random.integers(0, 6, (5, 13)).astype(dtype)
    x.flat[:2], y.flat[:2] = 0, (0, 3)
    p.apply("power", [p.argument(x), p.argument(y)], [typed((5, 13), dtype)])
    return [np.power(x, y)]


@SAMPLES.add("multiply", COMPLEX, variant="complex", ulps=4, of_largest=True)
def multiply(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Products of complex numbers"""
    x, y = _normal(random, dtype), _normal(random, dtype)
    p.apply("multiply", [p.argument(x), p.argument(y)], [typed(x.shape, dtype)])
    return [wide(x) * wide(y)]


@SAMPLES.add("divide", COMPLEX, variant="complex", ulps=8, of_largest=True)
def divide(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Quotients of complex numbers"""
    x, y = _normal(random, dtype), _normal(random, dtype)
    p.apply("divide", [p.argument(x), p.argument(y)], [typed(x.shape, dtype)])
    return [wide(x) / wide(y)]


@SAMPLES.add("power", COMPLEX, variant="complex", ulps=32, of_largest=True)
def complex_power(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Powers of complex numbers"""
    x, y = _normal(random, dtype), _normal(random, dtype)
    p.apply("power", [p.argument(x), p.argument(y)], [typed(x.shape, dtype)])
    return [np.power(wide(x), wide(y))]


@SAMPLES.add("sign", COMPLEX, variant="complex", ulps=4, of_largest=True)
def sign(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """The directions of complex numbers, and zero where there is none"""
    x = _normal(random, dtype)
    x[0, 0] = 0
    p.apply("sign", [p.argument(x)], [typed(x.shape, dtype)])
    w = wide(x)
    return [np.where(w == 0, w, w / np.abs(w))]


@SAMPLES.add("abs", COMPLEX, variant="complex", ulps=4)
def magnitude(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Magnitudes of complex numbers"""
    x = _normal(random, dtype)
    p.apply("abs", [p.argument(x)], [typed(x.shape, x.real.dtype.name)])
    return [np.abs(wide(x)).astype(x.real.dtype)]


def _normal(random: np.random.Generator, dtype: str) -> Any:
    parts = random.uniform(0.5, 2, (2, 5, 7)) * random.choice([-1, 1], (2, 5, 7))
    return (parts[0] + 1j * parts[1]).astype(dtype)


# Workaround for stablehlo-total-order
@SAMPLES.add("compare", FLOATS, variant="total_order", interpreted=False)
def total_order(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """-NaN below -inf, -0 below 0, and inf below NaN, where TOTALORDER is asked for"""
    kind = named_dtype(dtype)
    order = np.array([-np.nan, -np.inf, -1, -0.0, 0.0, 2, np.inf, np.nan]).astype(kind)
    order[[0, -1]] = np.copysign(np.float64(np.nan), [-1, 1]).astype(kind)
    i, j = np.divmod(random.permutation(64), 8)
    p.apply(
        "compare", [p.argument(order[i]), p.argument(order[j])], [typed((64,), "bool")],
        "comparison_direction = #stablehlo<comparison_direction LT>, "
        "compare_type = #stablehlo<comparison_type TOTALORDER>",
    )  # fmt: skip
    return [i < j]
