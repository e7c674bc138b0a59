"""Special values of a dtype, for which the specification fixes the results of operations.

Among floats: infinities, zeros of both signs, NaN and subnormal numbers. Among integers: the least
and greatest, whose sums, differences and products wrap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from plugrt_sdk.conformance.expect import Array
from plugrt_sdk.conformance.operation_cases import CASES, SIGNED, Case, expected_of
from plugrt_sdk.conformance.operations.sample import FLOATS, INTEGERS, Samples, Write, wide
from plugrt_sdk.testing.program_text import ProgramText, named_dtype, typed

SAMPLES = Samples()
SPECIAL, WRAPPED, SIGNED_ZERO, SUBNORMAL = "special", "wrapped", "signed_zero", "subnormal"
"""Variants: ``wrapped`` is for integers, the others for floats."""
_NUMBERS = (np.nan, -np.inf, np.inf, -0.0, 0.0, -2.5, 1.5, 0.5)
_HALF = ("float32", "bfloat16")
_WHAT = "NaN, infinities and zeros of both signs"
_BY_NAME = {case.name: case for case in CASES}


def _pairs(values: Array) -> list[Array]:
    """Returns all pairs of values, as two arrays."""
    i, j = np.divmod(np.arange(values.size**2), values.size)
    return [values[i], values[j]]


def _edges(dtype: str) -> Array:
    info = np.iinfo(dtype)
    middle = info.max // 2
    return np.array([info.min, info.max, 0, 1, middle, middle + 2, info.max - 1, 3], dtype)


def _elementwise(case: Case, docstring: str) -> Write:
    def write(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
        values = _edges(dtype) if dtype in INTEGERS else _specials(random, dtype)
        arguments = _pairs(values) if case.operands == 2 else [values]
        kind = typed(arguments[0].shape, case.result or dtype)
        p.apply(case.name, [p.argument(a) for a in arguments], [kind])
        return [expected_of(case, arguments)]

    write.__doc__ = docstring
    return write


def _specials(random: np.random.Generator, dtype: str) -> Array:
    return random.permutation(np.array(_NUMBERS)).astype(named_dtype(dtype))


for _name in ("abs", "ceil", "floor", "is_finite", "sign"):
    SAMPLES.add(_name, _HALF, variant=SPECIAL)(_elementwise(_BY_NAME[_name], f"Of {_WHAT}"))
for _name in (
    "negate", "round_nearest_afz", "round_nearest_even", "cbrt", "cosine", "exponential",
    "exponential_minus_one", "log", "log_plus_one", "logistic", "rsqrt", "sine", "sqrt", "tan",
    "tanh", "add", "subtract", "multiply", "divide", "remainder", "atan2", "power",
):  # fmt: skip
    SAMPLES.add(_name, _HALF, variant=SPECIAL, ulps=_BY_NAME[_name].ulps)(
        _elementwise(_BY_NAME[_name], f"Of {_WHAT}")
    )
for _name in ("maximum", "minimum"):
    SAMPLES.add(_name, FLOATS, variant=SPECIAL)(
        _elementwise(_BY_NAME[_name], f"Of {_WHAT}: NaN if one of the two is")
    )


@SAMPLES.add("compare", FLOATS, variant=SPECIAL)
def compare(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """NaN is unequal to everything, and zeros of both signs are equal"""
    arguments = _pairs(_specials(random, dtype))
    operands = [p.argument(a) for a in arguments]
    cases = [case for case in CASES if case.name == "compare"]
    for case in cases:
        p.apply("compare", operands, [typed((64,), "bool")],
                "comparison_direction = #stablehlo<comparison_direction "
                f"{case.attributes}>")  # fmt: skip
    return [expected_of(case, arguments) for case in cases]


@SAMPLES.add("clamp", _HALF, variant=SPECIAL)
def clamp(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Infinities become the limits, NaN stays"""
    x, kind = _specials(random, dtype), named_dtype(dtype)
    low, high = (p.argument(kind.type(v)) for v in (-1, 1))
    p.apply("clamp", [low, p.argument(x), high], [typed(x.shape, dtype)])
    return [np.clip(wide(x), -1, 1)]


@SAMPLES.add("select", _HALF, variant=SPECIAL)
def select(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """NaN and infinities are chosen, and left out, as other numbers are"""
    x, y = _specials(random, dtype), _specials(random, dtype)
    which = ~np.isfinite(x)
    p.apply("select", [p.argument(which), p.argument(x), p.argument(y)], [typed(x.shape, dtype)])
    return [np.where(which, x, y)]


# Workaround for stablehlo-total-order
@SAMPLES.add("sort", _HALF, variant=SPECIAL, interpreted=False)
def sort(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """-inf first, inf and NaN last, where TOTALORDER is asked for"""
    x, t, b = _specials(random, dtype), typed((), dtype), typed((), "bool")
    p.apply("sort", [p.argument(x)], [typed(x.shape, dtype)],
            "dimension = 0 : i64, is_stable = false",
            [f"^bb0(%x: {t}, %y: {t}): %c = stablehlo.compare LT, %x, %y, TOTALORDER : "
             f"({t}, {t}) -> {b} stablehlo.return %c : {b}"])  # fmt: skip
    return [np.sort(wide(x))]


for _name in ("add", "subtract", "multiply"):
    SAMPLES.add(_name, INTEGERS, variant=WRAPPED)(
        _elementwise(_BY_NAME[_name], "Of the least and greatest integers, modulo 2 to the width")
    )
for _name in ("abs", "negate"):
    SAMPLES.add(_name, SIGNED, variant=WRAPPED)(
        _elementwise(_BY_NAME[_name], "Of the least and greatest integers; the least stays")
    )


_ZEROS = (-0.0, 0.0, -0.25, 0.25)
"""Zeros, and numbers that some operations round to zero."""


def _inverted(case: Case) -> Write:
    """Returns a writer of a program that divides 1 by an operation's results.

    Zeros of both signs are equal; their reciprocals are not.
    """

    def write(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
        x = random.permutation(np.array(_ZEROS)).astype(named_dtype(dtype))
        arguments, kind = [x, np.abs(x)][: case.operands], typed(x.shape, dtype)
        if case.operands == 2:
            arguments[1][arguments[1] == 0] = 1  # 0 / 0 has no sign
        made = p.apply(case.name, [p.argument(a) for a in arguments], [kind], returned=False)
        p.apply("divide", [p.argument(np.ones_like(x)), *made], [kind])
        with np.errstate(all="ignore"):
            return [1 / wide(expected_of(case, arguments))]

    write.__doc__ = "The signs of zeros, by one divided by them"
    return write


for _name in (
    "abs", "negate", "ceil", "floor", "round_nearest_afz", "round_nearest_even", "multiply",
    "divide",
):  # fmt: skip
    SAMPLES.add(_name, _HALF, variant=SIGNED_ZERO, ulps=1)(_inverted(_BY_NAME[_name]))


def _chosen_zeros(name: str, negative: Callable[[Array, Array], Array]) -> Write:
    def write(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
        zeros = random.permutation(np.array([0.0, -0.0])).astype(named_dtype(dtype))
        x, y = _pairs(zeros)
        kind = typed(x.shape, dtype)
        made = p.apply(name, [p.argument(x), p.argument(y)], [kind], returned=False)
        p.apply("divide", [p.argument(np.ones_like(x)), *made], [kind])
        return [np.where(negative(np.signbit(x), np.signbit(y)), -np.inf, np.inf)]

    write.__doc__ = "Of zeros of both signs, of which -0 is the smaller one"
    return write


SAMPLES.add("maximum", _HALF, variant=SIGNED_ZERO)(_chosen_zeros("maximum", np.logical_and))
SAMPLES.add("minimum", _HALF, variant=SIGNED_ZERO)(_chosen_zeros("minimum", np.logical_or))


# Arithmetic may flush them to zero, as accelerators do; these operations only use bits.
def _subnormal(name: str) -> Write:
    def write(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
        info: Any = ml_dtypes.finfo(named_dtype(dtype))
        least = float(info.smallest_subnormal)
        x = (random.permutation(np.arange(-4, 4)) * least).astype(named_dtype(dtype))
        kind = typed(x.shape, (case := _BY_NAME[name]).result or dtype)
        p.apply(name, [p.argument(x)], [kind])
        return [expected_of(case, [x])]

    write.__doc__ = "Of numbers below the least normal one, which are kept"
    return write


for _name in ("abs", "negate", "is_finite"):
    SAMPLES.add(_name, FLOATS, variant=SUBNORMAL)(_subnormal(_name))
