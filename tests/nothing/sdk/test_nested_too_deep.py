"""The NumPy backend and programs that are nested deeper than Python's stack allows."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from plugrt.errors import ArgumentError, ResourceExhausted
from plugrt.interface import CompileOptions, DeviceAssignment, Program
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk import BackendClient

TYPE = "(%a: tensor<f32>) -> tensor<f32>"
SUM = "%s = stablehlo.add %a, %a : tensor<f32>\n"


def calling(depth: int) -> str:
    """Returns a program whose functions call each other."""
    names = ["public @main", *(f"private @f{i}" for i in range(1, depth))]
    return (
        "\n".join(
            f"func.func {name}{TYPE} {{\n%0 = call @f{i + 1}(%a) : (tensor<f32>) -> tensor<f32>\n"
            "return %0 : tensor<f32>\n}"
            for i, name in enumerate(names)
        )
        + f"\nfunc.func private @f{depth}{TYPE} {{\n{SUM}return %s : tensor<f32>\n}}"
    )


def nesting(depth: int) -> str:
    """Returns a program whose regions are nested."""
    within = f"{SUM}stablehlo.return %s : tensor<f32>"
    for i in range(depth):
        within = (
            f'%{i} = "stablehlo.if"(%p) ({{ {within} }}, {{ stablehlo.return %a : tensor<f32> }}) '
            f": (tensor<i1>) -> tensor<f32>\nstablehlo.return %{i} : tensor<f32>"
        )
    before, _, after = within.rpartition("stablehlo.return")
    condition = "%p = stablehlo.constant dense<true> : tensor<i1>\n"
    return f"func.func public @main{TYPE} {{\n{condition}{before}return{after}\n}}"


@pytest.fixture(params=[calling, nesting], ids=lambda write: write.__name__)
def program(request: pytest.FixtureRequest) -> Program:
    write: Callable[[int], str] = request.param
    return Program(f"module @m {{\n{write(140)}\n}}".encode())


@pytest.fixture(autouse=True)
def _few_frames() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(500)
    yield
    sys.setrecursionlimit(before)


def compiled(client: BackendClient, program: Program) -> Any:
    where = DeviceAssignment(((client.devices()[0].id,),))
    return client.compile(program, CompileOptions(device_assignment=where))


def test_deep_programs_are_refused_and_run_with_more_frames(program: Program) -> None:
    client = BackendClient(NumpyBackend())
    reason = r"nested too deep .* sys.getrecursionlimit\(\) is 500"
    with pytest.raises(ResourceExhausted, match=reason) as caught:
        compiled(client, program)
    assert not isinstance(caught.value, ArgumentError)
    sys.setrecursionlimit(5000)
    executable = compiled(client, program)
    held = client.buffer_from_host(np.asarray(3, np.float32), client.devices()[0])
    results = executable.execute([[held]])
    assert results[0][0].to_host() == 6
    sys.setrecursionlimit(len(inspect.stack(0)) + 100)
    with pytest.raises(ResourceExhausted, match="nested too deep"):
        executable.execute([[held]])
