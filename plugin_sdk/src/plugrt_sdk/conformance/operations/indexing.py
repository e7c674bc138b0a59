"""Samples of gather, scatter and sort."""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrt_sdk.conformance.operations.sample import (
    COMPLEX,
    MOVED,
    NUMBERS,
    Samples,
    numbered,
    whole,
)
from plugrt_sdk.testing.program_text import ProgramText, body, i64s, typed

SAMPLES = Samples()


@SAMPLES.add("gather", MOVED)
def gather(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Rows, pieces of rows, and a row for each of a batch; starts beyond the end are moved back"""
    x = numbered(random, (4, 5, 6), dtype)
    a = p.argument(x)
    rows, pieces, batch = (
        random.integers(-2, 8, shape).astype(np.int32) for shape in ((3, 1), (7, 1), (4, 2, 1))
    )
    for index, numbers, sizes, shape in (
        (rows, "offset_dims = [1, 2], collapsed_slice_dims = [0], start_index_map = [0], "
         "index_vector_dim = 1", (1, 5, 6), (3, 5, 6)),
        (pieces, "offset_dims = [1], collapsed_slice_dims = [0, 1], start_index_map = [1], "
         "index_vector_dim = 1", (1, 1, 4), (7, 4)),
        (batch, "offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], "
         "start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2",
         (1, 1, 6), (4, 2, 6)),
    ):  # fmt: skip
        p.apply("gather", [a, p.argument(index)], [typed(shape, dtype)],
                f"dimension_numbers = #stablehlo.gather<{numbers}>, "
                f"slice_sizes = {i64s(*sizes)}")  # fmt: skip
    return (
        x[np.clip(rows[:, 0], 0, 3)],
        x[0, np.clip(pieces[:, 0], 0, 4), :4],
        x[np.arange(4)[:, None], np.clip(batch[..., 0], 0, 4)],
    )


_ROWS = (
    "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
    "index_vector_dim = 1"
)


def _scatter(p: ProgramText, dtype: str, random: np.random.Generator, region: str) -> Any:
    x, updates = whole(random, (5, 4), dtype), whole(random, (6, 4), dtype)
    index = np.array([[3], [0], [-1], [3], [9], [4]], np.int32)
    p.apply("scatter", [p.argument(x), p.argument(index), p.argument(updates)],
            [typed((5, 4), dtype)],
            f"scatter_dimension_numbers = #stablehlo.scatter<{_ROWS}>", [region])  # fmt: skip
    return x, index[:, 0], updates


@SAMPLES.add("scatter", (*NUMBERS, *COMPLEX))
def scatter_add(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Rows added to those of an array, two to one of them; those out of range are left out"""
    x, index, updates = _scatter(p, dtype, random, body("add", dtype))
    found = x.copy()
    for i, row in zip(index, updates, strict=True):
        if 0 <= i < 5:
            found[i] += row
    return [found]


@SAMPLES.add("scatter", ("float32", "int32", "bfloat16"), variant="maximum")
def scatter_maximum(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """The greater of a row of an array and its update"""
    x, index, updates = _scatter(p, dtype, random, body("maximum", dtype))
    found = x.copy()
    for i, row in zip(index, updates, strict=True):
        if 0 <= i < 5:
            found[i] = np.maximum(found[i], row)
    return [found]


@SAMPLES.add("scatter", MOVED, variant="replace")
def scatter_replace(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Rows in the place of an array's"""
    x, updates = numbered(random, (5, 4), dtype), numbered(random, (3, 4), dtype)
    index = np.array([[3], [0], [7]], np.int32)
    t = typed((), dtype)
    p.apply("scatter", [p.argument(x), p.argument(index), p.argument(updates)],
            [typed((5, 4), dtype)], f"scatter_dimension_numbers = #stablehlo.scatter<{_ROWS}>",
            [f"^bb0(%x: {t}, %y: {t}): stablehlo.return %y : {t}"])  # fmt: skip
    found = x.copy()
    found[[3, 0]] = updates[:2]
    return [found]


def _less(dtype: str, direction: str) -> str:
    t, b = typed((), dtype), typed((), "bool")
    return f"%c = stablehlo.compare {direction}, %x, %y : ({t}, {t}) -> {b}"


@SAMPLES.add("sort", NUMBERS)
def sort(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Rows in ascending and columns in descending order"""
    x = whole(random, (7, 5), dtype)
    t, b, a = typed((), dtype), typed((), "bool"), p.argument(x)
    for direction, axis in (("LT", 1), ("GT", 0)):
        p.apply("sort", [a], [typed((7, 5), dtype)],
                f"dimension = {axis} : i64, is_stable = false",
                [f"^bb0(%x: {t}, %y: {t}): {_less(dtype, direction)} "
                 f"stablehlo.return %c : {b}"])  # fmt: skip
    return np.sort(x, 1), np.sort(x, 0)[::-1]


@SAMPLES.add("sort", ("float32", "int32", "bfloat16"), variant="stable")
def sort_stable(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Keys and the positions that they had: equal keys keep their order"""
    x = whole(random, (40,), dtype)
    t, n, b = typed((), dtype), typed((), "int32"), typed((), "bool")
    p.apply("sort", [p.argument(x), p.argument(np.arange(40, dtype=np.int32))],
            [typed((40,), dtype), typed((40,), "int32")], "dimension = 0 : i64, is_stable = true",
            [f"^bb0(%x: {t}, %y: {t}, %i: {n}, %j: {n}): {_less(dtype, 'LT')} "
             f"stablehlo.return %c : {b}"])  # fmt: skip
    order = np.argsort(x.astype(np.float64), kind="stable")
    return x[order], order.astype(np.int32)
