"""The comparators that plugrt writes are read as keys, which NumPy sorts by in one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt.stablehlo.bindings import ir
from plugrt.stablehlo.modules import parse
from plugrt_sdk.numpy_backend.comparators import sort_keys
from plugrt_sdk.numpy_backend.devices import Grid
from plugrt_sdk.numpy_backend.functions import ModuleCompiler
from plugrt_sdk.numpy_backend.operation import Operation

SORTS: dict[str, tuple[Callable[..., Any], int]] = {
    "sort": (xp.sort, 1),
    "descending": (lambda x: xp.sort(x, descending=True), 1),
    "argsort": (xp.argsort, 1),
    "two keys": (lambda x: plugrt.lax.sort((x, x[::-1]), num_keys=2), 2),
    "top_k": (lambda x: plugrt.lax.top_k(x, 2), 1),
}


@pytest.mark.parametrize("dtype", ["float32", "int16", "uint8", "bfloat16", "complex64"])
@pytest.mark.parametrize("name", SORTS)
def test_keys_are_recognised(name: str, dtype: str) -> None:
    function, keys = SORTS[name]
    if dtype == "complex64":
        if name == "top_k":  # takes none
            return
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
