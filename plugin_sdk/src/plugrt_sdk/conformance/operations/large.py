"""Larger arrays, for which compilers choose other loops, tiles and algorithms."""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrt_sdk.conformance.operations.sample import Samples, whole
from plugrt_sdk.testing.program_text import ProgramText, body, i64s, named_dtype, typed

SAMPLES = Samples()
_DTYPES = ("float32", "int32")
_LARGE: dict[str, Any] = {"variant": "large", "interpreted": False}
"""The interpreter would need seconds."""


@SAMPLES.add("dot_general", _DTYPES, **_LARGE)
def product(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """The product of matrices of more than 128 rows and columns"""
    x, y = whole(random, (130, 200), dtype), whole(random, (200, 150), dtype)
    highest = "#stablehlo<precision HIGHEST>"
    p.apply("dot_general", [p.argument(x), p.argument(y)], [typed((130, 150), dtype)],
            "dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], "
            "rhs_contracting_dimensions = [0]>, "
            f"precision_config = [{highest}, {highest}]")  # fmt: skip
    return [x @ y]


@SAMPLES.add("sort", _DTYPES, **_LARGE)
def sort(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """A thousand elements"""
    x, t, b = random.permutation(1000).astype(dtype), typed((), dtype), typed((), "bool")
    p.apply("sort", [p.argument(x)], [typed((1000,), dtype)],
            "dimension = 0 : i64, is_stable = false",
            [f"^bb0(%x: {t}, %y: {t}): %c = stablehlo.compare LT, %x, %y : ({t}, {t}) -> {b} "
             f"stablehlo.return %c : {b}"])  # fmt: skip
    return [np.sort(x)]


@SAMPLES.add("reduce", _DTYPES, **_LARGE)
def reduce(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """The sum of 100,000 elements"""
    x = whole(random, (100_000,), dtype)
    p.apply("reduce", [p.argument(x), p.argument(named_dtype(dtype).type(0))],
            [typed((), dtype)], f"dimensions = {i64s(0)}", [body("add", dtype)])  # fmt: skip
    return [x.sum(dtype=dtype)]


@SAMPLES.add("add", _DTYPES, **_LARGE)
def add(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Sums of 70,000 elements each"""
    x, y = (whole(random, (70_000,), dtype) for _ in range(2))
    p.apply("add", [p.argument(x), p.argument(y)], [typed((70_000,), dtype)])
    return [x + y]


@SAMPLES.add("transpose", _DTYPES, **_LARGE)
def transpose(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """A matrix of 75,000 elements"""
    x = np.arange(75_000).reshape(300, 250).astype(dtype)
    p.apply("transpose", [p.argument(x)], [typed((250, 300), dtype)], f"permutation = {i64s(1, 0)}")
    return [x.T]


@SAMPLES.add("gather", _DTYPES, **_LARGE)
def gather(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """700 rows of 100 elements, of a thousand"""
    x = np.arange(100_000).reshape(1000, 100).astype(dtype)
    rows = random.integers(0, 1000, (700, 1)).astype(np.int32)
    p.apply("gather", [p.argument(x), p.argument(rows)], [typed((700, 100), dtype)],
            "dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], "
            "start_index_map = [0], index_vector_dim = 1>, "
            f"slice_sizes = {i64s(1, 100)}")  # fmt: skip
    return [x[rows[:, 0]]]
