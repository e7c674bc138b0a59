"""Computations of the NumPy backend that NumPy lacks or does slowly: LU, products of integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plugrt.interface import CompileOptions, Program
from plugrt_numpy.backend import NumpyBackend
from plugrt_numpy.operations.lu import factor_lu, permutation_of
from plugrt_sdk import BackendClient

SHAPES = [
    (5, 5),
    (1, 1),
    (40, 40),
    (100, 37),
    (37, 100),
    (3, 2, 50, 50),
    (0, 4, 4),
    (2, 0, 3),
    (3, 0),
]


def matrices(shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(sum(shape))
    found = rng.standard_normal(shape)
    if dtype.startswith("complex"):
        found = found + 1j * rng.standard_normal(shape)
    return found.astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", SHAPES)
def test_lu(shape: tuple[int, ...], dtype: str) -> None:
    a = matrices(shape, dtype)
    packed, pivots, failed = factor_lu(a)
    *batch, rows, columns = shape
    size = min(rows, columns)
    assert (packed.shape, packed.dtype) == (a.shape, a.dtype)
    assert (pivots.shape, pivots.dtype, failed.dtype) == ((*batch, size), np.int32, np.int32)
    assert not failed.any()
    lower = np.tril(packed[..., :size], -1) + np.eye(rows, size, dtype=a.dtype)
    order = permutation_of(pivots - np.int32(1), rows)
    exchanged = np.take_along_axis(a, order[..., None], -2)
    tolerance = 200 * np.finfo(dtype).eps
    np.testing.assert_allclose(lower @ np.triu(packed[..., :size, :]), exchanged, atol=tolerance)
    assert (abs(lower) <= (1 if a.dtype.kind == "f" else 1.5)).all()  # the largest is the pivot


def test_a_singular_matrix_says_where() -> None:
    packed, pivots, failed = factor_lu(
        np.float32([[[1, 2], [2, 4]], [[0, 0], [0, 0]], [[1, 0], [0, 1]]])
    )
    assert failed.tolist() == [2, 1, 0]
    assert pivots.tolist() == [[2, 2], [1, 2], [1, 2]]
    assert packed[0].tolist() == [[2, 4], [0.5, 0]]


def test_exchanges_of_rows() -> None:
    assert permutation_of(np.int32([[2, 2], [1, 1]]), 4).tolist() == [[2, 0, 1, 3], [1, 0, 2, 3]]


@pytest.mark.parametrize("dtype", ["int32", "uint32"])
@pytest.mark.parametrize("terms", [1, 7, 600])
def test_products_of_integers_keep_the_low_bits(dtype: str, terms: int) -> None:
    info = np.iinfo(dtype)
    rng = np.random.default_rng(terms)
    x = rng.integers(info.min, info.max, (5, terms), dtype, endpoint=True)
    y = rng.integers(info.min, info.max, (terms, 6), dtype, endpoint=True)
    x[0], y[:, 0] = info.min, info.max
    x[1], y[:, 1] = info.max, info.min
    kind = "i32" if dtype == "int32" else "ui32"
    text = f"""func.func public @main(%x: tensor<5x{terms}x{kind}>, %y: tensor<{terms}x6x{kind}>)
        -> tensor<5x6x{kind}> {{
      %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
        : (tensor<5x{terms}x{kind}>, tensor<{terms}x6x{kind}>) -> tensor<5x6x{kind}>
      return %0 : tensor<5x6x{kind}>
    }}"""
    np.testing.assert_array_equal(run(text, x, y), np.matmul(x, y))


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "float64", "complex64"])
def test_selections_of_many_elements(dtype: str) -> None:
    """All bits are equal, also payloads of NaNs, to `np.where`'s, which is four times slower."""
    rng = np.random.default_rng(0)
    count = 3000 * np.dtype(dtype).itemsize
    x, y = (rng.integers(0, 256, count, np.uint8) for _ in range(2))
    x, y = (a % 2 if dtype == "bool" else a for a in (x, y))
    x, y = x.view(dtype).reshape(3, 1000), y.view(dtype).reshape(3, 1000)
    condition = rng.random((3, 1000)) < 0.5
    kinds = {"bool": "i1", "int8": "i8", "float16": "f16", "float32": "f32", "float64": "f64",
             "complex64": "complex<f32>"}  # fmt: skip
    kind = f"tensor<3x1000x{kinds[dtype]}>"
    text = f"""func.func public @main(%c: tensor<3x1000xi1>, %x: {kind}, %y: {kind}) -> {kind} {{
      %0 = stablehlo.select %c, %x, %y : tensor<3x1000xi1>, {kind}
      return %0 : {kind}
    }}"""
    wanted = np.where(condition, x, y)
    assert run(text, condition, x, y).tobytes() == wanted.tobytes()


def run(text: str, *arguments: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    client = BackendClient(NumpyBackend(check_types=True))
    program = client.compile(Program(text.encode()), CompileOptions())
    [[result]] = program.execute(
        [[client.buffer_from_host(a, client.devices()[0])] for a in arguments]
    )
    return result.to_host()
