"""`compile_for_device`: kernels keep values on the device, NumPy runs the rest or refuses it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from plugrt.errors import InvalidArgument, Unimplemented
from plugrt.interface import CompileOptions, DeviceAssignment, Program
from plugrt_numpy.device_launches import DeviceOperations, compile_for_device

LOOP = """
func.func @main(%x: tensor<3xf32>, %n: tensor<i32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %k, %y = stablehlo.while(%i = %n, %a = %x) : tensor<i32>, tensor<3xf32>
    cond {
      %more = stablehlo.compare GT, %i, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %j = stablehlo.subtract %i, %one : tensor<i32>
      %b = stablehlo.add %a, %a : tensor<3xf32>
      stablehlo.return %j, %b : tensor<i32>, tensor<3xf32>
    }
  %z = stablehlo.negate %y : tensor<3xf32>
  return %y, %z : tensor<3xf32>, tensor<3xf32>
}
"""
KERNELS = {"add": np.add, "subtract": np.subtract, "compare": np.greater, "negate": None}


class OnDevice:
    """An array that NumPy does not compute with."""

    def __init__(self, array: Any) -> None:
        self.array = np.asarray(array)

    def __bool__(self) -> bool:
        return bool(self.array)


def launch(arguments: list[Any], count: Counter[str], **options: Any) -> list[np.ndarray]:
    def make(function: Any) -> Any:
        run = function and (lambda *xs: OnDevice(function(*[x.array for x in xs])))
        return lambda op, device: run

    def put(array: Any, device: int) -> OnDevice:
        count["put"] += 1
        return OnDevice(array)

    def get(array: OnDevice) -> Any:
        count["get"] += 1
        return array.array

    kernels = {f"stablehlo.{name}": make(function) for name, function in KERNELS.items()}
    device = DeviceOperations(kernels, put, get, **options)
    given = CompileOptions(device_assignment=DeviceAssignment(((0,),)))
    run = compile_for_device(Program(LOOP.encode(), "mlir", "loop"), given, device)
    assert count.pop("put") == 2  # the constants
    return [result.array for [result] in run([[OnDevice(a)] for a in arguments])]


def test_only_what_has_no_kernel_is_copied() -> None:
    count: Counter[str] = Counter()
    found = launch([np.float32([1, 2, 3]), np.int32(3)], count)
    np.testing.assert_array_equal(found, np.float32([[8, 16, 24], [-8, -16, -24]]))
    assert count == {"get": 1, "put": 1}  # the operand and the result of the negation


def test_without_numpy_it_is_refused_with_operation_and_types() -> None:
    with pytest.raises(Unimplemented, match=r"no kernel for stablehlo.negate of \(float32\[3\]\)"):
        launch([], Counter(), uses_numpy=False)


def test_unknown_options_are_refused() -> None:
    options = CompileOptions(env_overrides={"speed": "11"})
    with pytest.raises(InvalidArgument, match="speed"):
        compile_for_device(Program(b""), options, DeviceOperations({}, OnDevice, np.asarray))
