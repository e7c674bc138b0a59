"""An author's functions to read programs: `read_module` and `result_types`."""

from __future__ import annotations

import numpy as np
import pytest

from plugrt.errors import ProgramError
from plugrt.interface import Program, TensorType
from plugrt.stablehlo.modules import bytecode, parse, portable_artifact
from plugrt_sdk import read_module, result_types

TEXT = """func.func public @main(%x: tensor<2x3xf32>) -> (tensor<3x2xf32>, tensor<2xbf16>) {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = stablehlo.constant dense<0.0> : tensor<2xbf16>
  return %0, %1 : tensor<3x2xf32>, tensor<2xbf16>
}"""


@pytest.mark.parametrize(
    "form", [str.encode, lambda t: bytecode(parse(t)), lambda t: portable_artifact(parse(t))]
)
def test_text_bytecode_and_portable_artifacts_are_read(form: object) -> None:
    program = Program(form(TEXT))  # type: ignore[operator]
    module = read_module(program)  # operations do not keep their module alive
    [main] = module.body.operations
    names = [op.operation.name for op in main.regions[0].blocks[0].operations]
    assert sorted(names) == ["func.return", "stablehlo.constant", "stablehlo.transpose"]
    bfloat16 = np.dtype("bfloat16")
    assert result_types(program) == [
        TensorType((3, 2), np.dtype(np.float32)), TensorType((2,), bfloat16)
    ]  # fmt: skip


def test_a_module_is_the_authors_own() -> None:
    program = Program(TEXT.encode())
    first, second = read_module(program), read_module(program)
    first.body.operations[0].operation.erase()
    assert len(list(first.body.operations)) == 0
    assert len(list(second.body.operations)) == 1


def test_a_program_with_shardings_is_read() -> None:
    text = TEXT.replace(
        "%x: tensor<2x3xf32>", '%x: tensor<2x3xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {}]>}'
    )
    module = read_module(Program(f'module {{ sdy.mesh @m = <["a"=2]>\n{text} }}'.encode()))
    assert [op.operation.name for op in module.body.operations] == ["sdy.mesh", "func.func"]


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (b"", "empty"),
        (b"func.func @main( {", "p:1:"),
        (b"func.func @other() { return }", "'main'"),
        (b"func.func @main(%x: tensor<?xf32>) { return }", "dynamic"),
        (b"ML\xefR and nothing", "p"),
    ],
)
@pytest.mark.parametrize("read", [read_module, result_types])
def test_programs_that_cannot_be_read_are_program_errors(
    code: bytes, says: str, read: object
) -> None:
    with pytest.raises(ProgramError) as raised:
        read(Program(code, name="p"))  # type: ignore[operator]
    assert says in str(raised.value)
