"""Sorts with only the first elements read, and the order of equal ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plugrt.interface import CompileOptions, Program
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk import BackendClient

SPECIAL = np.float32([0.0, -0.0, np.inf, -np.inf, 1, 1, -1, np.nan, 2, 0.0])


def run(text: str, *arguments: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    client = BackendClient(NumpyBackend(check_types=True))
    program = client.compile(Program(text.encode()), CompileOptions())
    puts = [[client.buffer_from_host(a, client.devices()[0])] for a in arguments]
    return [result.to_host() for [result] in program.execute(puts)]


def order_of(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Returns the descending total order of floats along the last axis, stable for equal ones."""
    bits = x.view(np.int32).astype(np.int64)
    keys = np.where(bits < 0, -(bits + (1 << 31)) - 1, bits)
    return np.argsort(-keys, axis=-1, kind="stable")


@pytest.mark.parametrize("k", [1, 3, 49, 50])
@pytest.mark.parametrize("shape", [(50,), (4, 50), (2, 3, 50)])
def test_top_k(shape: tuple[int, ...], k: int) -> None:
    x = np.random.default_rng(k).choice(SPECIAL, shape)  # many equal ones
    dims = "x".join(map(str, shape[:-1])) + "x" * (len(shape) > 1)
    operand, values, places = (
        f"tensor<{dims}50xf32>",
        f"tensor<{dims}{k}xf32>",
        f"tensor<{dims}{k}xi32>",
    )
    text = f"""func.func public @main(%a: {operand}) -> ({values}, {places}) {{
      %v, %i = chlo.top_k(%a, k = {k}) : {operand} -> ({values}, {places})
      return %v, %i : {values}, {places}
    }}"""
    order = order_of(x)[..., :k]
    found, where = run(text, x)
    np.testing.assert_array_equal(where, order)
    assert found.tobytes() == np.take_along_axis(x, order, -1).tobytes()


@pytest.mark.parametrize("dtype", ["i8", "ui8", "i16", "i32", "ui32", "i64", "i1"])
@pytest.mark.parametrize("axis", [0, 1])
def test_the_order_of_equal_integers(dtype: str, axis: int) -> None:
    numpy = {"i1": "bool", "ui8": "uint8", "ui32": "uint32"}.get(dtype, f"int{dtype[1:]}")
    info = np.iinfo(numpy) if numpy != "bool" else np.iinfo(np.uint8)
    choice = [0, 1] if numpy == "bool" else [info.min, info.max, 0, 1, 7]
    x = np.random.default_rng(0).choice(np.array(choice, numpy), (30, 40))
    places = np.broadcast_to(
        np.arange(x.shape[axis]).reshape((-1, 1) if axis == 0 else (1, -1)), x.shape
    )
    kind, index = f"tensor<30x40x{dtype}>", "tensor<30x40xi64>"
    text = f"""func.func public @main(%a: {kind}, %i: {index}) -> ({kind}, {index}) {{
      %0:2 = "stablehlo.sort"(%a, %i) <{{dimension = {axis} : i64, is_stable = true}}> ({{
        ^bb0(%x: tensor<{dtype}>, %y: tensor<{dtype}>, %p: tensor<i64>, %q: tensor<i64>):
          %less = stablehlo.compare LT, %x, %y : (tensor<{dtype}>, tensor<{dtype}>) -> tensor<i1>
          stablehlo.return %less : tensor<i1>
      }}) : ({kind}, {index}) -> ({kind}, {index})
      return %0#0, %0#1 : {kind}, {index}
    }}"""
    order = np.argsort(x, axis=axis, kind="stable")
    found, where = run(text, x, places)
    np.testing.assert_array_equal(where, order)
    np.testing.assert_array_equal(found, np.take_along_axis(x, order, axis))


def test_a_result_that_is_read_otherwise_is_sorted_whole() -> None:
    text = """func.func public @main(%a: tensor<9xf32>)
        -> (tensor<2xf32>, tensor<3xf32>, tensor<f32>) {
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %s = "stablehlo.sort"(%a) <{dimension = 0 : i64}> ({
        ^bb0(%x: tensor<f32>, %y: tensor<f32>):
          %less = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %less : tensor<i1>
      }) : (tensor<9xf32>) -> tensor<9xf32>
      %0 = stablehlo.slice %s [0:2] : (tensor<9xf32>) -> tensor<2xf32>
      %1 = stablehlo.slice %s [6:9] : (tensor<9xf32>) -> tensor<3xf32>
      %2 = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<9xf32>, tensor<f32>) -> tensor<f32>
      return %0, %1, %2 : tensor<2xf32>, tensor<3xf32>, tensor<f32>
    }"""
    first, last, total = run(text, np.float32([3, 1, 2, 9, 8, 7, 6, 5, 4]))
    assert (first.tolist(), last.tolist(), float(total)) == ([1, 2], [7, 8, 9], 45)
