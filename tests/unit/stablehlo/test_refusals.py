"""Programs that end the process in MLIR, XLA or the bindings are refused or read before these."""

from __future__ import annotations

import pytest

from plugrt.errors import ProgramError
from plugrt.interface import Program
from plugrt.programs.parsing import parse_program
from plugrt.stablehlo.module_graph import module_graph

COMPLEX = "dense<(1.0,2.0)> : tensor<complex<f32>>"


def read(body: str, functions: str = "") -> object:
    text = f"""func.func public @main(%a: tensor<2xf32>) -> tensor<2xf32> {{
  {body}
  return %0 : tensor<2xf32> }}
{functions}"""
    return parse_program(Program(text.encode()))[0]


@pytest.mark.parametrize("name", ["f", "a b", r"x\0Ay", "é", "%", "f@g", r"a\22b"])
def test_functions_that_call_themselves_are_found_by_any_name(name: str) -> None:
    call = f'%0 = func.call @"{name}"(%a) : (tensor<2xf32>) -> tensor<2xf32>'
    function = f"""func.func private @"{name}"(%a: tensor<2xf32>) -> tensor<2xf32> {{ {call}
        return %0 : tensor<2xf32> }}"""
    with pytest.raises(ProgramError, match="calls itself"):
        read(call, function)


@pytest.mark.parametrize(
    "body",
    [
        r'%0 = func.call @"f\FF"(%a) : (tensor<2xf32>) -> tensor<2xf32>',
        r'%0 = stablehlo.custom_call @Sharding(%a) {called_computations = [@"f\FF"]}'
        " : (tensor<2xf32>) -> tensor<2xf32>",
    ],
)
def test_names_that_are_not_utf8_are_refused(body: str) -> None:
    function = r"""func.func private @"f\FF"(%a: tensor<2xf32>) -> tensor<2xf32> {
        return %a : tensor<2xf32> }"""
    with pytest.raises(ProgramError, match="not UTF-8"):
        read(body, function)


def test_calls_may_have_attributes_that_the_bindings_have_no_class_for() -> None:
    # jaxlib 0.10.2 ended the process when such an attribute was read by its index.
    read(
        f"%0 = stablehlo.custom_call @Sharding(%a) {{alpha = {COMPLEX}}}"
        " : (tensor<2xf32>) -> tensor<2xf32>"
    )


def test_graphs_show_complex_constants() -> None:
    module = read(f"%c = stablehlo.constant {COMPLEX}\n  %0 = stablehlo.add %a, %a : tensor<2xf32>")
    assert "value = dense<(1.000000e+00,2.000000e+00)>" in module_graph(module, "main")  # type: ignore[arg-type]
