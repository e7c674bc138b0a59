"""Faults of XLA in jaxlib: if a test fails here, its workaround is not needed any more.

`docs/data/upstream_faults.toml` lists the workarounds.
"""

from __future__ import annotations

import signal
import sys
from typing import Any

import numpy as np

import plugrt
from support import children
from support.markdown import ROOT


def run(operation: str, result: str, **arguments: np.generic) -> Any:
    """Returns the result of one operation, whose operands are parameters of the program."""
    kinds = {"bool": "i1", "int32": "i32", "complex64": "complex<f32>"}
    parameters = [f"%{name}: tensor<{kinds[str(x.dtype)]}>" for name, x in arguments.items()]
    text = f"""func.func @main({", ".join(parameters)}) -> tensor<{result}> {{
      %0 = {operation}
      return %0 : tensor<{result}>
    }}"""
    return np.asarray(plugrt.compile(text)(*arguments.values()))[()]


def test_a_sum_of_constant_booleans_is_their_xor() -> None:
    text = """func.func @main() -> tensor<i1> {
      %true = stablehlo.constant dense<true> : tensor<i1>
      %0 = stablehlo.add %true, %true : tensor<i1>
      return %0 : tensor<i1>
    }"""
    assert not np.asarray(plugrt.compile(text)())
    assert run("stablehlo.add %x, %x : tensor<i1>", "i1", x=np.True_)  # not a constant


def test_the_absolute_value_of_infinity_and_nan_is_nan() -> None:
    absolute = "stablehlo.abs %x : (tensor<complex<f32>>) -> tensor<f32>"
    assert np.isnan(run(absolute, "f32", x=np.complex64(complex(np.inf, np.nan))))


def test_a_power_of_integers_uses_six_bits_of_the_exponent() -> None:
    power = "stablehlo.power %x, %y : tensor<i32>"
    assert run(power, "i32", x=np.int32(0), y=np.int32(64)) == 1
    assert run(power, "i32", x=np.int32(0), y=np.int32(63)) == 0


def test_a_complex_root_ignores_the_sign_of_zero() -> None:
    below = np.complex64(complex(-4, -0.0))
    root = run("stablehlo.sqrt %x : tensor<complex<f32>>", "complex<f32>", x=below)
    assert root.imag == -np.sqrt(below).imag == 2


def test_an_attribute_of_complex_numbers_ends_the_process() -> None:
    command = [sys.executable, ROOT / "docs/findings/complex_attribute.py"]
    done = children.run(command, timeout=120)
    assert "by name: TypeError" in done.stdout
    assert done.returncode == -signal.SIGABRT, done.stderr
