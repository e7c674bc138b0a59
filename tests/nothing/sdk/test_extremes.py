"""Reductions of values with positions: ``argmax`` and ``argmin`` by NumPy's, others by trees."""

from __future__ import annotations

import operator
from functools import reduce
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from plugrt.interface import CompileOptions, Program
from plugrt.stablehlo.element_names import element_name
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk import BackendClient
from support.native_core import python_calls

PROGRAM = """func.func public @main(%x: tensor<4x6xTYPE>, %start: tensor<TYPE>)
    -> (tensor<4xTYPE>, tensor<4xi32>) {
  %places = stablehlo.iota dim = COUNTED : tensor<4x6xi32>
  %none = stablehlo.constant dense<99> : tensor<i32>
  %0:2 = stablehlo.reduce(%x init: %start), (%places init: %none) across dimensions = [1]
    : (tensor<4x6xTYPE>, tensor<4x6xi32>, tensor<TYPE>, tensor<i32>)
    -> (tensor<4xTYPE>, tensor<4xi32>)
    reducer(%a: tensor<TYPE>, %b: tensor<TYPE>) (%i: tensor<i32>, %j: tensor<i32>) {
      %beyond = stablehlo.compare BEYOND, %a, %b : (tensor<TYPE>, tensor<TYPE>) -> tensor<i1>
      %nan = stablehlo.compare NE, %a, %a : (tensor<TYPE>, tensor<TYPE>) -> tensor<i1>
      %left = stablehlo.or %beyond, %nan : tensor<i1>
      %same = stablehlo.compare EQ, %a, %b : (tensor<TYPE>, tensor<TYPE>) -> tensor<i1>
      %before = stablehlo.compare TIE, %i, %j : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %tie = stablehlo.and %same, %before : tensor<i1>
      %leftmost = stablehlo.or %left, %tie : tensor<i1>
      %value = stablehlo.select %left, %a, %b : tensor<i1>, tensor<TYPE>
      %place = stablehlo.select %leftmost, %i, %j : tensor<i1>, tensor<i32>
      stablehlo.return %value, %place : tensor<TYPE>, tensor<i32>
    }
  return %0#0, %0#1 : tensor<4xTYPE>, tensor<4xi32>
}"""
"""JAX's program for ``argmax`` with GT, LT and 1."""
CLIENT = BackendClient(NumpyBackend())


def run(text: str, *arguments: Any) -> list[Any]:
    device = CLIENT.devices()[0]
    put = [(CLIENT.buffer_from_host(np.asarray(x), device),) for x in arguments]
    results = CLIENT.compile(Program(text.encode()), CompileOptions()).execute(put)
    return [buffer.to_host() for [buffer] in results]


def expected(x: Any, start: Any, places: Any, beyond: str, tie: str) -> list[Any]:
    """Runs the reducer of `PROGRAM` in Python, from the left."""
    is_beyond, is_before = (getattr(operator, word.lower()) for word in (beyond, tie))

    def pick(one: Any, other: Any) -> Any:
        (a, i), (b, j) = one, other
        left = is_beyond(a, b) or a != a  # true for a NaN
        return (a if left else b), (i if left or (a == b and is_before(i, j)) else j)

    rows = [
        reduce(pick, zip(*row, strict=True), (start, 99)) for row in zip(x, places, strict=True)
    ]
    return [np.array(column) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize(
    "dtype",
    [np.float32, ml_dtypes.bfloat16, np.float16, np.int32, np.uint8],
    ids=lambda d: d.__name__,
)
@pytest.mark.parametrize("beyond", ["GT", "LT"])
@pytest.mark.parametrize(("tie", "counted"), [("LT", 1), ("GT", 1), ("LT", 0)])
def test_places_of_extremes(dtype: Any, beyond: str, tie: str, counted: int) -> None:
    x = np.random.default_rng(0).integers(0, 3, (4, 6)).astype(dtype)
    if not np.issubdtype(dtype, np.integer):
        x[1, 4] = x[2, 1] = x[2, 3] = np.nan
    start = (x.dtype.type(-1) if x.dtype.kind != "u" else x.dtype.type(0)) if beyond == "GT" else 9
    text = PROGRAM.replace("TYPE", element_name(x.dtype)).replace("COUNTED", str(counted))
    text = text.replace("BEYOND", beyond).replace("TIE", tie)
    with python_calls() as seen:
        found = run(text, x, np.asarray(start, dtype))
    places = np.broadcast_to(np.indices(x.shape)[counted], x.shape)
    for column, wanted in zip(found, expected(x, start, places, beyond, tie), strict=True):
        np.testing.assert_array_equal(column.astype(float), wanted.astype(float))
    assert ("fold_first_axis" in seen) == ((tie, counted) != ("LT", 1)), (
        "an argmax is not folded in a tree"
    )
