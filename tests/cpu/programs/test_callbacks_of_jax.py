"""Callbacks of JAX's CPU client, by index, are refused: without its functions jaxlib crashes."""

from __future__ import annotations

import pytest

import plugrt
from plugrt.errors import Unimplemented

# As JAX 0.10 lowers `pure_callback`.
TEXT = """func.func public @main(%a: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.custom_call @TARGET(%a) {api_version = 4 : i32,
    backend_config = {index = 0 : ui64}} : (tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}"""


@pytest.mark.parametrize(
    "target", ["xla_ffi_python_cpu_callback", "xla_ffi_partitioned_python_cpu_callback"]
)
@pytest.mark.parametrize("form", [str, str.encode])
def test_a_callback_that_jax_numbered_is_refused(form: type[str], target: str) -> None:
    if not plugrt.get_backend().platform_version.startswith("jaxlib"):
        pytest.skip("the library is not jaxlib")
    program = form(TEXT.replace("TARGET", target))
    with pytest.raises(Unimplemented, match=r"by an index that JAX's own CPU client has"):
        plugrt.compile(program)
