"""Operations that the specification has deprecated, or that are rare in programs.

A backend may lack them. It must not run another operation instead, or end the process.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrt_sdk.conformance.operations.sample import Samples, numbered, whole, wide
from plugrt_sdk.testing.program_text import ProgramText, body, i64s, typed

SAMPLES = Samples()
_DTYPES = ("float32", "int32")


@SAMPLES.add("broadcast", _DTYPES, uncommon=True, interpreted=False)
def broadcast(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """New dimensions before those of the array; deprecated for broadcast_in_dim"""
    x = numbered(random, (3, 5), dtype)
    p.apply("broadcast", [p.argument(x)], [typed((2, 1, 3, 5), dtype)],
            f"broadcast_sizes = {i64s(2, 1)}")  # fmt: skip
    return [np.broadcast_to(x, (2, 1, 3, 5))]


@SAMPLES.add("dot", _DTYPES, uncommon=True, interpreted=False)
def dot(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """A product of matrices; deprecated for dot_general"""
    x, y = whole(random, (3, 5), dtype), whole(random, (5, 4), dtype)
    p.apply("dot", [p.argument(x), p.argument(y)], [typed((3, 4), dtype)])
    return [wide(x) @ wide(y)]


@SAMPLES.add("einsum", _DTYPES, uncommon=True, interpreted=False)
def einsum(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """A batch of products, transposed; deprecated for dot_general"""
    x, y = whole(random, (2, 3, 5), dtype), whole(random, (2, 4, 5), dtype)
    p.apply("einsum", [p.argument(x), p.argument(y)], [typed((2, 4, 3), dtype)],
            'einsum_config = "bij,bkj->bki"')  # fmt: skip
    return [np.einsum("bij,bkj->bki", wide(x), wide(y))]


@SAMPLES.add("unary_einsum", _DTYPES, uncommon=True, interpreted=False)
def unary_einsum(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Sums over one dimension, transposed; deprecated for reduce and transpose"""
    x = whole(random, (2, 3, 5), dtype)
    p.apply("unary_einsum", [p.argument(x)], [typed((5, 2), dtype)],
            'einsum_config = "abc->ca"')  # fmt: skip
    return [np.einsum("abc->ca", wide(x))]


@SAMPLES.add("torch_index_select", _DTYPES, uncommon=True, interpreted=False)
def torch_index_select(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Columns by their numbers, some of them twice; deprecated for gather"""
    x, index = numbered(random, (4, 6), dtype), np.array([5, 0, 5], np.int32)
    p.apply("torch_index_select", [p.argument(x), p.argument(index)], [typed((4, 3), dtype)],
            "dim = 1 : i64, batch_dims = 0 : i64")  # fmt: skip
    return [x[:, index]]


@SAMPLES.add("cross-replica-sum", _DTYPES, uncommon=True, interpreted=False)
def cross_replica_sum(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Over one replica, the array itself; deprecated for all_reduce"""
    x = numbered(random, (3, 5), dtype)
    p.apply("cross-replica-sum", [p.argument(x)], [typed((3, 5), dtype)],
            "replica_groups = dense<[[0]]> : tensor<1x1xi64>")  # fmt: skip
    return [x]


@SAMPLES.add("dynamic_conv", ("float32",), uncommon=True, ulps=4, of_largest=True)
def dynamic_conv(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """A convolution whose padding is a value"""
    x, kernel = whole(random, (1, 4, 5, 1), dtype), whole(random, (2, 3, 1, 1), dtype)
    padding = p.constant("[[1, 0], [0, 1]]", typed((2, 2), "int64"))
    p.apply(
        "dynamic_conv", [p.argument(x), p.argument(kernel), padding], [typed((1, 4, 4, 1), dtype)],
        "dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, "
        "batch_group_count = 1 : i64, feature_group_count = 1 : i64, "
        f"window_strides = {i64s(1, 1)}",
    )  # fmt: skip
    padded = np.pad(wide(x)[0, :, :, 0], ((1, 0), (0, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (2, 3))
    return [np.einsum("ijkl,kl->ij", windows, wide(kernel)[:, :, 0, 0])[None, :, :, None]]


@SAMPLES.add("set_dimension_size", _DTYPES, uncommon=True, interpreted=False)
def set_dimension_size(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """The sum over as many elements as the dimension has now"""
    x, size = numbered(random, (7,), dtype), np.int32(4)
    bounded = typed((7,), dtype).replace("7x", "?x").replace(">", ", #stablehlo.bounds<7>>")
    [part] = p.apply("set_dimension_size", [p.argument(x), p.argument(size)], [bounded],
                     "dimension = 0 : i64", returned=False)  # fmt: skip
    nothing = p.argument(x.dtype.type(0))
    p.apply("reduce", [part, nothing], [typed((), dtype)],
            f"dimensions = {i64s(0)}", [body("add", dtype)])  # fmt: skip
    return [wide(x)[:4].sum(dtype=wide(x).dtype)]


@SAMPLES.add("async_start", _DTYPES, uncommon=True, interpreted=False)
def async_start(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """A slice that is begun, and waited for by async_done"""
    x = numbered(random, (7,), dtype)
    a, found = p.argument(x), typed((4,), dtype)
    [begun] = p.apply(
        "async_start", [a], [f"!stablehlo.future<{found}>"], "", [
            f"^bb0(%x: {a[1]}): %r = stablehlo.slice %x [2:6] : ({a[1]}) -> {found} "
            f"stablehlo.return %r : {found}"
        ], returned=False,
    )  # fmt: skip
    p.apply("async_done", [begun], [found])
    return [x[2:6]]
