"""The NumPy backend recognises plugrt's comparators as keys, and sorts by them in one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt.stablehlo.bindings import ir
from plugrt.stablehlo.modules import parse
from plugrt_numpy.devices import Grid
from plugrt_numpy.functions import ModuleCompiler
from plugrt_numpy.operation import Operation
from plugrt_numpy.operations.comparators import sort_keys

SORTS: dict[str, tuple[Callable[..., Any], int]] = {
    "sort": (xp.sort, 1),
    "descending": (lambda x: xp.sort(x, descending=True), 1),
    "argsort": (xp.argsort, 1),
    "two keys": (lambda x: plugrt.lax.sort((x, x[::-1]), num_keys=2), 2),
    "top_k": (lambda x: plugrt.lax.top_k(x, 2), 1),
}


CASES = [
    (name, dtype)
    for name in SORTS
    for dtype in ("float32", "int16", "uint8", "bfloat16", "complex64")
    if (name, dtype) != ("top_k", "complex64")  # top_k refuses complex numbers
]


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_keys_are_recognised(name: str, dtype: str) -> None:
    function, keys = SORTS[name]
    if dtype == "complex64":
        keys *= 2
    array = np.zeros((5, 4), np.dtype(dtype))
    module = parse(plugrt.jit(function).lower(array).as_text())
    compiler = ModuleCompiler(module, Grid())
    found: list[int] = []

    def look(operation: ir.Operation) -> ir.WalkResult:
        if operation.name == "stablehlo.sort":
            found.append(len(sort_keys(Operation(operation, compiler))))
        return ir.WalkResult.ADVANCE

    with module.context:
        module.operation.walk(look)
    assert found == [keys]


MIXED = """func.func public @main(%x: tensor<4xf32>, %y: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>) {
  %r:2 = "stablehlo.sort"(%x, %y) ({
  ^bb0(%a0: tensor<f32>, %b0: tensor<f32>, %a1: tensor<f32>, %b1: tensor<f32>):
    %less = stablehlo.compare LT, %a0, %b0, FIRST : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %same = stablehlo.compare EQ, %a0, %b0, SAME : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %rest = stablehlo.compare LT, %a1, %b1, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %found = stablehlo.select %same, %rest, %less : tensor<i1>, tensor<i1>
    stablehlo.return %found : tensor<i1>
  }) {dimension = 0 : i64, is_stable = true} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}"""  # noqa: E501


@pytest.mark.parametrize("first", ["FLOAT", "TOTALORDER"])
@pytest.mark.parametrize("same", ["FLOAT", "TOTALORDER"])
def test_equality_must_be_that_of_the_order(first: str, same: str) -> None:
    module = parse(MIXED.replace("FIRST", first).replace("SAME", same))
    compiler = ModuleCompiler(module, Grid())
    with module.context:
        sort = module.body.operations[0].regions[0].blocks[0].operations[0].operation
        found = sort_keys(Operation(sort, compiler))
    assert len(found) == (2 if first == same else 0)
