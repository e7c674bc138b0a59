"""``chlo.scan`` in programs from elsewhere: forwards and backwards, with several values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt_sdk.testing.program_text import named_dtype, typed


def program(shape: tuple[int, ...], dimension: int, dtype: str, reverse: str) -> str:
    """Returns a program that scans: its results are sums, doubled elements, and the last sum."""
    whole, rest = typed(shape, dtype), typed([*shape[:dimension], *shape[dimension + 1 :]], dtype)
    return f"""func.func public @main(%x: {whole}, %i: {rest}) -> ({whole}, {whole}, {rest}) {{
  %0:3 = "chlo.scan"(%x, %i) <{{dimension = {dimension} : i64{reverse},
    operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 2, 1>}}> ({{
  ^bb0(%a: {rest}, %c: {rest}):
    %s = stablehlo.add %a, %c : {rest}
    %t = stablehlo.add %a, %a : {rest}
    stablehlo.return %s, %t, %s : {rest}, {rest}, {rest}
  }}) : ({whole}, {rest}) -> ({whole}, {whole}, {rest})
  return %0#0, %0#1, %0#2 : {whole}, {whole}, {rest}
}}"""


@pytest.mark.parametrize("reverse", ["", ", is_reverse = false", ", is_reverse = true"])
@pytest.mark.parametrize(
    ("shape", "dimension"), [((4,), 0), ((4, 3), 0), ((2, 5, 3), 1), ((0,), 0)]
)
@pytest.mark.parametrize("dtype", ["int32", "float32", "complex64", "uint8"])
def test_a_scan_goes_in_its_direction(
    reverse: str, shape: tuple[int, ...], dimension: int, dtype: str
) -> None:
    """Earlier, the NumPy backend ignored ``is_reverse``, and other backends refused scans."""
    x: Any = np.arange(np.prod(shape)).reshape(shape).astype(named_dtype(dtype))
    first = np.ones(shape[:dimension] + shape[dimension + 1 :], x.dtype)
    sums, twice, last = plugrt.compile(program(shape, dimension, dtype, reverse))(x, first)
    rows = np.flip(x, dimension) if "true" in reverse else x
    wanted = np.cumsum(rows, dimension, dtype=x.dtype) + np.expand_dims(first, dimension)
    end = np.take(wanted, -1, dimension) if shape[dimension] else first
    wanted = np.flip(wanted, dimension) if "true" in reverse else wanted
    np.testing.assert_array_equal(np.asarray(sums), wanted.astype(x.dtype))
    np.testing.assert_array_equal(np.asarray(twice), x + x)
    np.testing.assert_array_equal(np.asarray(last), end.astype(x.dtype))


def test_scans_within_a_scan() -> None:
    """The inner scan starts with the outer scan's carry, and runs backwards."""
    text = """func.func public @main(%x: tensor<3x4xi32>, %i: tensor<i32>) -> tensor<3x4xi32> {
  %0:2 = "chlo.scan"(%x, %i) <{dimension = 0 : i64, operandSegmentSizes = array<i32: 1, 1>,
    resultSegmentSizes = array<i32: 1, 1>}> ({
  ^bb0(%row: tensor<4xi32>, %c: tensor<i32>):
    %1:2 = "chlo.scan"(%row, %c) <{dimension = 0 : i64, is_reverse = true,
      operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%a: tensor<i32>, %d: tensor<i32>):
      %s = stablehlo.add %a, %d : tensor<i32>
      stablehlo.return %s, %s : tensor<i32>, tensor<i32>
    }) : (tensor<4xi32>, tensor<i32>) -> (tensor<4xi32>, tensor<i32>)
    stablehlo.return %1#0, %1#1 : tensor<4xi32>, tensor<i32>
  }) : (tensor<3x4xi32>, tensor<i32>) -> (tensor<3x4xi32>, tensor<i32>)
  return %0#0 : tensor<3x4xi32>
}"""
    x = np.arange(12, dtype=np.int32).reshape(3, 4)
    found = plugrt.compile(text)(x, np.int32(0))
    wanted = np.cumsum(x[:, ::-1]).reshape(3, 4)[:, ::-1]
    np.testing.assert_array_equal(np.asarray(found), wanted)
