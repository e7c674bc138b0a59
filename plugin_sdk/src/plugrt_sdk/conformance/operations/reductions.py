"""Samples of reduce and map."""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrt_sdk.conformance.operations.sample import (
    COMPLEX,
    NUMBERS,
    Samples,
    numbered,
    whole,
    wide,
)
from plugrt_sdk.testing.program_text import ProgramText, body, i64s, named_dtype, typed

SAMPLES = Samples()
_AXES = ((0,), (1, 2), (0, 1, 2))
_STARTS = {"add": 0, "maximum": 0, "minimum": 3, "multiply": 1, "and": True, "or": False}
_FUNCTIONS: dict[str, Any] = {
    "add": np.sum, "maximum": np.max, "minimum": np.min, "multiply": np.prod, "and": np.all,
    "or": np.any,
}  # fmt: skip


def _reduce(p: ProgramText, dtype: str, random: np.random.Generator, name: str) -> Any:
    """Writes reductions along some axes; the result includes their initial value."""
    shape = (2, 2, 2) if name == "multiply" else (3, 4, 5)
    x = whole(random, shape, dtype) if dtype != "bool" else numbered(random, shape, dtype)
    start = named_dtype(dtype).type(_STARTS[name])
    a, b = p.argument(x), p.argument(start)
    results = []
    for axes in _AXES:
        rest = [n for axis, n in enumerate(shape) if axis not in axes]
        p.apply("reduce", [a, b], [typed(rest, dtype)], f"dimensions = {i64s(*axes)}",
                [body(name, dtype)])  # fmt: skip
        keep = {} if dtype == "bool" else {"initial": _STARTS[name]}
        found = _FUNCTIONS[name](wide(x), axis=axes, **keep)
        results.append(np.asarray(found).astype(x.dtype))
    return results


@SAMPLES.add("reduce", (*NUMBERS, *COMPLEX))
def reduce_add(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Sums along one, two and three dimensions"""
    return _reduce(p, dtype, random, "add")


@SAMPLES.add("reduce", NUMBERS, variant="maximum")
def reduce_maximum(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Maxima along one, two and three dimensions"""
    return _reduce(p, dtype, random, "maximum")


@SAMPLES.add("reduce", NUMBERS, variant="minimum")
def reduce_minimum(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Minima along one, two and three dimensions"""
    return _reduce(p, dtype, random, "minimum")


@SAMPLES.add("reduce", NUMBERS, variant="multiply")
def reduce_multiply(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Products along one, two and three dimensions"""
    return _reduce(p, dtype, random, "multiply")


@SAMPLES.add("reduce", ("bool",), variant="all")
def reduce_and(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Whether all are true, along one, two and three dimensions"""
    return _reduce(p, dtype, random, "and")


@SAMPLES.add("reduce", ("bool",), variant="any")
def reduce_or(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Whether one is true, along one, two and three dimensions"""
    return _reduce(p, dtype, random, "or")


@SAMPLES.add("reduce", ("float32",), variant="empty")
def reduce_empty(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """A sum of no elements is its start"""
    start = np.float32(7)
    p.apply("reduce", [p.argument(np.zeros((2, 0), dtype)), p.argument(start)],
            [typed((2,), dtype)], f"dimensions = {i64s(1)}", [body("add", dtype)])  # fmt: skip
    return [np.full(2, start)]


@SAMPLES.add("reduce", ("float32", "int32"), variant="two_values")
def reduce_two(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """The greatest of each row and, beside it, its position"""
    x, places = numbered(random, (4, 5), dtype), np.tile(np.arange(5, dtype=np.int32), (4, 1))
    t, n, b = (typed((), d) for d in (dtype, "int32", "bool"))
    region = (
        f"^bb0(%a: {t}, %i: {n}, %b: {t}, %j: {n}): %c = stablehlo.compare GT, %a, %b : ({t}, {t}) "
        f"-> {b} %d = stablehlo.select %c, %a, %b : {b}, {t} %e = stablehlo.select %c, %i, %j : "
        f"{b}, {n} stablehlo.return %d, %e : {t}, {n}"
    )
    starts = [p.argument(named_dtype(dtype).type(-1)), p.argument(np.int32(-1))]
    p.apply("reduce", [p.argument(x), p.argument(places), *starts],
            [typed((4,), dtype), typed((4,), "int32")], f"dimensions = {i64s(1)}",
            [region])  # fmt: skip
    return x.max(1), x.argmax(1).astype(np.int32)


@SAMPLES.add("map", ("float32", "int32"), interpreted=False)
def map_(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """A function of two elements, for those of two arrays"""
    x, y = whole(random, (3, 4), dtype), whole(random, (3, 4), dtype)
    p.apply("map", [p.argument(x), p.argument(y)], [typed((3, 4), dtype)],
            f"dimensions = {i64s(0, 1)}", [body("multiply", dtype)])  # fmt: skip
    return [x * y]
