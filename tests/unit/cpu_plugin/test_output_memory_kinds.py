"""The memories of results: as jaxlib states them, or the device's default memory."""

from __future__ import annotations

from typing import Any

import pytest

from plugrt.interface import CompileOptions, Program
from plugrt_cpu import adapter
from plugrt_cpu.create_client import start
from plugrt_cpu.errors import JAXLIB_ERRORS

TWO = """
module { func.func public @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %y = stablehlo.add %x, %x : tensor<2xf32>
  return %x, %y : tensor<2xf32>, tensor<2xf32>
} }
"""


class OfJaxlib:
    """An executable with the answers of jaxlib 0.9.0."""

    def __init__(self, says: str) -> None:
        self.says = says

    def get_output_memory_kinds(self) -> Any:
        raise error_of_jaxlib(self.says)


def error_of_jaxlib(says: str) -> Exception:
    error: Exception = adapter._jax.JaxRuntimeError(says)
    return error


def test_jaxlib_that_does_not_state_them(monkeypatch: pytest.MonkeyPatch) -> None:
    # 0.9.0 and 0.9.0.1; 0.9.1 states them.
    older = OfJaxlib("UNIMPLEMENTED: GetOutputMemoryKinds is not supported.")
    assert adapter.output_memory_kinds(older) == ()
    with pytest.raises(JAXLIB_ERRORS, match="another fault"):
        adapter.output_memory_kinds(OfJaxlib("INTERNAL: another fault"))
    client = start({})
    stated = client.compile(Program(TWO.encode(), "mlir", "two"), CompileOptions())
    monkeypatch.setattr(adapter, "output_memory_kinds", lambda executable: ())
    assumed = client.compile(Program(TWO.encode(), "mlir", "two"), CompileOptions())
    default = client.devices()[0].default_memory().kind
    assert assumed.executable.output_memory_kinds == stated.executable.output_memory_kinds
    assert assumed.executable.output_memory_kinds == (default, default)
    client.close()
