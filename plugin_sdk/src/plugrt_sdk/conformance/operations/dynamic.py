"""Operations whose shapes are values; here these are constants, and the results' types known."""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrt_sdk.conformance.operations.sample import Samples, numbered
from plugrt_sdk.testing.program_text import ProgramText, Value, i64s, typed

SAMPLES = Samples()
_DTYPES = ("float32", "int32")


def _numbers(p: ProgramText, *values: int) -> Value:
    return p.constant(str(list(values)), typed((len(values),), "int32"))


@SAMPLES.add("dynamic_reshape", _DTYPES)
def dynamic_reshape(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """To a shape that is a value"""
    x = numbered(random, (2, 6), dtype)
    p.apply("dynamic_reshape", [p.argument(x), _numbers(p, 3, 4)], [typed((3, 4), dtype)])
    return [x.reshape(3, 4)]


@SAMPLES.add("dynamic_broadcast_in_dim", _DTYPES)
def dynamic_broadcast_in_dim(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """To a shape that is a value"""
    x = numbered(random, (3, 1), dtype)
    p.apply("dynamic_broadcast_in_dim", [p.argument(x), _numbers(p, 2, 3, 4)],
            [typed((2, 3, 4), dtype)], f"broadcast_dimensions = {i64s(1, 2)}")  # fmt: skip
    return [np.broadcast_to(x, (2, 3, 4))]


@SAMPLES.add("dynamic_iota", _DTYPES)
def dynamic_iota(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Of a shape that is a value"""
    p.apply("dynamic_iota", [_numbers(p, 3, 4)], [typed((3, 4), dtype)],
            "iota_dimension = 1 : i64")  # fmt: skip
    return [np.indices((3, 4))[1].astype(dtype)]


@SAMPLES.add("dynamic_pad", _DTYPES)
def dynamic_pad(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """By amounts that are values"""
    x, filler = numbered(random, (3,), dtype), np.array(9, dtype)
    amounts = [_numbers(p, n) for n in (1, 2, 1)]
    p.apply("dynamic_pad", [p.argument(x), p.argument(filler), *amounts], [typed((8,), dtype)])
    found = np.full(8, filler)
    found[1:6:2] = x
    return [found]


@SAMPLES.add("real_dynamic_slice", _DTYPES, interpreted=False)
def real_dynamic_slice(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Between limits that are values"""
    x = numbered(random, (9,), dtype)
    p.apply("real_dynamic_slice", [p.argument(x), *(_numbers(p, n) for n in (1, 8, 3))],
            [typed((3,), dtype)])  # fmt: skip
    return [x[1:8:3]]


@SAMPLES.add("dynamic_gather", _DTYPES)
def dynamic_gather(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """With sizes that are values"""
    x, index = numbered(random, (4, 5), dtype), np.array([[2], [0], [9]], np.int32)
    p.apply("dynamic_gather", [p.argument(x), p.argument(index), _numbers(p, 1, 5)],
            [typed((3, 5), dtype)],
            "dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], "
            "start_index_map = [0], index_vector_dim = 1>")  # fmt: skip
    return [x[[2, 0, 3]]]
