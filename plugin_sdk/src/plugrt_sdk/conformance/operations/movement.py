"""Operations that move elements, of any dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrt_sdk.conformance.operations.sample import COMPLEX, MOVED, NUMBERS, Samples, numbered
from plugrt_sdk.testing.program_text import ProgramText, i64s, named_dtype, typed

SAMPLES = Samples()
_SHAPE = (2, 3, 4)


@SAMPLES.add("transpose", MOVED)
def transpose(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Three dimensions in another order"""
    x = numbered(random, _SHAPE, dtype)
    p.apply("transpose", [p.argument(x)], [typed((4, 2, 3), dtype)],
            f"permutation = {i64s(2, 0, 1)}")  # fmt: skip
    return [x.transpose(2, 0, 1)]


@SAMPLES.add("reshape", MOVED)
def reshape(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """To two dimensions, and to one"""
    x = numbered(random, _SHAPE, dtype)
    a = p.argument(x)
    for shape in ((6, 4), (24,)):
        p.apply("reshape", [a], [typed(shape, dtype)])
    return x.reshape(6, 4), x.reshape(24)


@SAMPLES.add("reverse", MOVED)
def reverse(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Two of three dimensions"""
    x = numbered(random, _SHAPE, dtype)
    p.apply("reverse", [p.argument(x)], [typed(_SHAPE, dtype)], f"dimensions = {i64s(0, 2)}")
    return [x[::-1, :, ::-1]]


@SAMPLES.add("slice", MOVED)
def slice_(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """With steps, and of no elements"""
    x = numbered(random, _SHAPE, dtype)
    a = p.argument(x)
    for low, high, step, shape in (
        ((1, 0, 1), (2, 3, 4), (1, 2, 2), (1, 2, 2)), ((0, 1, 2), (2, 1, 4), (1, 1, 1), (2, 0, 2)),
    ):  # fmt: skip
        p.apply("slice", [a], [typed(shape, dtype)],
                f"start_indices = {i64s(*low)}, limit_indices = {i64s(*high)}, "
                f"strides = {i64s(*step)}")  # fmt: skip
    return x[1:2, ::2, 1::2], x[:, 1:1, 2:]


@SAMPLES.add("concatenate", MOVED)
def concatenate(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Three arrays of different lengths, one of them empty"""
    parts = [numbered(random, (2, n, 4), dtype) for n in (3, 0, 2)]
    p.apply("concatenate", [p.argument(x) for x in parts], [typed((2, 5, 4), dtype)],
            "dimension = 1 : i64")  # fmt: skip
    return [np.concatenate(parts, 1)]


@SAMPLES.add("broadcast_in_dim", MOVED)
def broadcast_in_dim(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """A new dimension, a dimension of one element, and a scalar"""
    x, one, scalar = (numbered(random, s, dtype) for s in (_SHAPE, (4, 1), ()))
    for array, dims, shape in (
        (x, (0, 2, 3), (2, 5, 3, 4)), (one, (1, 2), (3, 4, 2)), (scalar, (), (3, 2)),
    ):  # fmt: skip
        p.apply("broadcast_in_dim", [p.argument(array)], [typed(shape, dtype)],
                f"broadcast_dimensions = {i64s(*dims)}")  # fmt: skip
    return (
        np.broadcast_to(x[:, None], (2, 5, 3, 4)),
        np.broadcast_to(one, (3, 4, 2)),
        np.broadcast_to(scalar, (3, 2)),
    )


@SAMPLES.add("pad", MOVED)
def pad(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Before, behind and between elements, and by negative numbers, which cut"""
    x, filler = numbered(random, (3, 4), dtype), named_dtype(dtype).type(1)
    p.apply("pad", [p.argument(x), p.argument(filler)], [typed((8, 2), dtype)],
            f"edge_padding_low = {i64s(1, -1)}, edge_padding_high = {i64s(2, -1)}, "
            f"interior_padding = {i64s(1, 0)}")  # fmt: skip
    found = np.full((8, 2), filler)
    found[1:6:2] = x[:, 1:3]
    return [found]


@SAMPLES.add("dynamic_slice", MOVED)
def dynamic_slice(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """From a start that is an argument; one beyond the end is moved back"""
    x = numbered(random, (4, 5), dtype)
    a = p.argument(x)
    for row, column in ((1, 2), (9, -3)):
        starts = [p.argument(np.int32(row)), p.argument(np.int32(column))]
        p.apply("dynamic_slice", [a, *starts], [typed((2, 3), dtype)],
                f"slice_sizes = {i64s(2, 3)}")  # fmt: skip
    return x[1:3, 2:5], x[2:4, 0:3]


@SAMPLES.add("dynamic_update_slice", MOVED)
def dynamic_update_slice(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """At a start that is an argument; one beyond the end is moved back"""
    x, part = numbered(random, (4, 5), dtype), numbered(random, (2, 3), dtype)
    a, b = p.argument(x), p.argument(part)
    for row, column in ((1, 2), (9, -3)):
        starts = [p.argument(np.int32(row)), p.argument(np.int32(column))]
        p.apply("dynamic_update_slice", [a, b, *starts], [typed((4, 5), dtype)])
    first, second = x.copy(), x.copy()
    first[1:3, 2:5] = second[2:4, 0:3] = part
    return first, second


@SAMPLES.add("iota", (*NUMBERS, *COMPLEX))
def iota(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Numbers from 0 along each of two dimensions"""
    for dimension in (0, 1):
        p.apply("iota", [], [typed((3, 4), dtype)], f"iota_dimension = {dimension} : i64")
    rows, columns = np.indices((3, 4))
    return rows.astype(named_dtype(dtype)), columns.astype(named_dtype(dtype))


@SAMPLES.add("get_dimension_size", ("float32",))
def get_dimension_size(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """The length of a dimension"""
    p.apply("get_dimension_size", [p.argument(numbered(random, _SHAPE, dtype))],
            [typed((), "int32")], "dimension = 2 : i64")  # fmt: skip
    return [np.int32(4)]


@SAMPLES.add("tuple", ("float32",), interpreted=False)
def tuple_(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Two arrays in one value, and out of it again in reverse"""
    x, y = numbered(random, (3,), dtype), numbered(random, (2,), dtype)
    a, b = p.argument(x), p.argument(y)
    [pair] = p.apply("tuple", [a, b], [f"tuple<{a[1]}, {b[1]}>"], returned=False)
    p.apply("get_tuple_element", [pair], [b[1]], "index = 1 : i32")
    p.apply("get_tuple_element", [pair], [a[1]], "index = 0 : i32")
    return y, x
