"""StableHLO texts that the tests of the cpu plugin compile."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from plugrt.interface import Program

_ELEMENTS = {
    "bool": "i1", "int2": "i2", "int4": "i4", "int8": "i8", "int16": "i16", "int32": "i32",
    "int64": "i64", "uint2": "ui2", "uint4": "ui4", "uint8": "ui8", "uint16": "ui16",
    "uint32": "ui32", "uint64": "ui64", "float16": "f16", "bfloat16": "bf16", "float32": "f32",
    "float64": "f64", "complex64": "complex<f32>", "complex128": "complex<f64>",
    "float4_e2m1fn": "f4E2M1FN", "float8_e3m4": "f8E3M4", "float8_e4m3": "f8E4M3",
    "float8_e4m3b11fnuz": "f8E4M3B11FNUZ", "float8_e4m3fn": "f8E4M3FN",
    "float8_e4m3fnuz": "f8E4M3FNUZ", "float8_e5m2": "f8E5M2", "float8_e5m2fnuz": "f8E5M2FNUZ",
    "float8_e8m0fnu": "f8E8M0FNU",
}  # fmt: skip
DTYPE_NAMES = sorted(_ELEMENTS)
"""The dtypes that the cpu plugin must declare."""


def dtype_of(name: str) -> np.dtype[Any]:
    """Returns the NumPy or ml_dtypes dtype of that name."""
    return np.dtype(getattr(ml_dtypes, name, name))


def tensor(shape: tuple[int, ...], dtype: str) -> str:
    """Returns the MLIR type of a tensor."""
    return f"tensor<{''.join(f'{n}x' for n in shape)}{_ELEMENTS[dtype]}>"


def function(parameters: list[str], results: list[str], body: str, **attributes: str) -> Program:
    """Returns a program whose parameters are %0, %1…; ``body`` ends before the return."""
    args = ", ".join(f"%arg{i}: {p}" for i, p in enumerate(parameters))
    attrs = ", ".join(f"mhlo.{k} = {v}" for k, v in attributes.items())
    text = f"module @test attributes {{{attrs}}} {{\n"
    text += f"func.func public @main({args}) -> ({', '.join(results)}) {{\n{body}\n}}\n}}"
    return Program(text.encode(), name="test")


def identity(shape: tuple[int, ...], dtype: str) -> Program:
    """Returns its argument."""
    t = tensor(shape, dtype)
    return function([t], [t], f"return %arg0 : {t}")


def add(shape: tuple[int, ...] = (4,), dtype: str = "float32", donate: bool = False) -> Program:
    """Returns the sum of two arguments; may donate the first."""
    t = tensor(shape, dtype)
    first = t + (" {tf.aliasing_output = 0 : i32}" if donate else "")
    return function([first, t], [t], f"%0 = stablehlo.add %arg0, %arg1 : {t}\nreturn %0 : {t}")


def all_reduce(shape: tuple[int, ...], replicas: int) -> Program:
    """Returns (the sum over all replicas, twice the argument), float32."""
    t, groups = tensor(shape, "float32"), ", ".join(map(str, range(replicas)))
    body = f"""
      %0 = "stablehlo.all_reduce"(%arg0) ({{
        ^bb0(%x: tensor<f32>, %y: tensor<f32>):
          %s = stablehlo.add %x, %y : tensor<f32>
          stablehlo.return %s : tensor<f32>
      }}) {{replica_groups = dense<[[{groups}]]> : tensor<1x{replicas}xi64>}} : ({t}) -> {t}
      %1 = stablehlo.add %arg0, %arg0 : {t}
      return %0, %1 : {t}, {t}"""
    return function([t], [t, t], body, num_replicas=f"{replicas} : i32")


def partitioned_sum(size: int, partitions: int) -> Program:
    """Returns (twice the argument, its sum) of a float32 vector divided over partitions."""
    t, split = (
        tensor((size,), "float32"),
        f'mhlo.sharding = "{{devices=[{partitions}]<=[{partitions}]}}"',
    )
    body = f"""
      %0 = stablehlo.add %arg0, %arg0 : {t}
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %1 = stablehlo.reduce(%arg0 init: %z) applies stablehlo.add across dimensions = [0]
        : ({t}, tensor<f32>) -> tensor<f32>
      return %0, %1 : {t}, tensor<f32>"""
    return function(
        [f"{t} {{{split}}}"], [f"{t} {{{split}}}", "tensor<f32>"], body,
        num_partitions=f"{partitions} : i32",
    )  # fmt: skip


def matmul(size: int, times: int = 1) -> Program:
    """Returns a square float32 matrix multiplied by itself: a computation of some duration."""
    t = tensor((size, size), "float32")
    lines = [
        f"%{i} = stablehlo.dot_general {'%arg0' if i == 0 else f'%{i - 1}'}, %arg0, "
        f"contracting_dims = [1] x [0] : ({t}, {t}) -> {t}"
        for i in range(times)
    ]
    return function([t], [t], "\n".join([*lines, f"return %{times - 1} : {t}"]))
