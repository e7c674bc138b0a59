"""StableHLO modules as text, bytecode and portable artifacts, and their types."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from plugrt.errors import ProgramError, ResourceExhausted, UnsupportedDtype
from plugrt.interface import TensorType
from plugrt.stablehlo import modules, types
from plugrt.stablehlo.bindings import ir, new_context
from plugrt.stablehlo.element_names import element_name

TEXT = """
module @m {
  func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.sine %x : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
"""


def test_every_form_is_read() -> None:
    module = modules.parse(TEXT)
    text = str(module)
    assert "stablehlo.sine" in text
    portable = modules.portable_artifact(module)
    assert modules.is_portable_artifact(portable)
    assert not modules.is_portable_artifact(modules.bytecode(module))
    for form in (TEXT.encode(), modules.bytecode(module), portable):
        assert str(modules.parse(form)) == text
    assert str(module) == text  # writing an artifact does not change the module


def test_versions() -> None:
    module = modules.parse(TEXT)
    oldest, newest = modules.minimum_version(), modules.current_version()
    assert oldest < newest
    for version in (oldest, newest, (99, 0, 0)):
        written = modules.portable_artifact(module, version)
        stated = ".".join(map(str, min(version, newest)))
        assert f"StableHLO_v{stated}".encode() in written[:64]
        assert "stablehlo.sine" in str(modules.parse(written))
    assert modules.parse_version("1.2.3") == (1, 2, 3)
    with pytest.raises(ProgramError, match=r"StableHLO 0\.1\.0"):
        modules.portable_artifact(module, (0, 1, 0))


@pytest.mark.parametrize(
    ("code", "line", "column", "words"),
    [
        ("module {\n  func.func @main() {\n    nonsense\n  }\n}", 3, 5, "."),
        ("func.func @main(%x: tensor<2xf32>) -> tensor<3xf32> {\n  return %x : tensor<2xf32>\n}",
         2, None, "return"),
        ('module {\n  "stablehlo.nosuch"() : () -> ()\n}', 2, None, "nosuch"),
        ("", None, None, "is empty"),
        ("  \n ", None, None, "is empty"),
        (b"ML\xefR\x00garbage", None, None, "."),
        (b"\xff\xfe\x00", 1, 1, "."),
    ],
)  # fmt: skip
def test_wrong_programs_say_where(
    code: str | bytes, line: int | None, column: int | None, words: str, capfd: Any
) -> None:
    with pytest.raises(ProgramError, match=words) as caught:
        modules.parse(code, "file.mlir")
    assert "file.mlir" in str(caught.value)
    assert caught.value.line == line
    if column is not None:
        assert caught.value.column == column
        assert f"file.mlir:{line}:{column}: " in str(caught.value)
    assert capfd.readouterr().err == ""


def test_truncated_and_damaged_bytes() -> None:
    module = modules.parse(TEXT)
    for whole in (modules.portable_artifact(module), modules.bytecode(module)):
        for cut in (5, 20, len(whole) // 2, len(whole) - 1):
            with pytest.raises(ProgramError):
                modules.parse(whole[:cut])


def test_a_name_of_no_text_is_refused_and_not_printed(capfd: pytest.CaptureFixture[str]) -> None:
    """Earlier, the bindings printed MLIR's raw message, which they cannot convert."""
    text = "func.func @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }"
    sine = text.replace("return %x", "%0 = stablehlo.sine %x : tensor<f32> return %0")
    code = modules.portable_artifact(modules.parse(sine))
    assert code.count(b"sine") == 1
    with pytest.raises(ProgramError, match=r"a name in the program is not UTF-8; .*si\\FFe"):
        modules.parse(code.replace(b"sine", b"si\xffe"))
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("major", [9, 2, 1])
def test_a_program_of_a_newer_stablehlo_says_so(major: int) -> None:
    """Earlier, the message had neither the program's version nor a cure."""
    text = """func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.sine %x : tensor<3xf32>
  return %0 : tensor<3xf32>
}"""
    code = modules.portable_artifact(modules.parse(text))
    ours = ".".join(map(str, modules.current_version()))
    version = f"{major}{ours[1:]}"
    code = code.replace(f"StableHLO_v{ours}".encode(), f"StableHLO_v{version}".encode())
    with pytest.raises(ProgramError) as raised:
        modules.parse(code.replace(b"sine_v2", b"sine_v9"))
    said = str(raised.value)
    assert "in bytecode version" in said
    newer = f"written for StableHLO {version}, and the installed jaxlib reads up to {ours}"
    assert (newer in said) == (major > 1)
    assert ("export the program for an older version" in said) == (major > 1)


def test_notes_of_the_parser_are_kept_with_their_places() -> None:
    text = """func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %x = stablehlo.sine %x : tensor<3xf32>
  return %x : tensor<3xf32>
}"""
    with pytest.raises(ProgramError, match=r"redefinition .*; note at 1:24: previously defined"):
        modules.parse(text)


_DTYPES = [
    "bool", "int2", "int4", "int8", "int16", "int32", "int64", "uint2", "uint4", "uint8", "uint16",
    "uint32", "uint64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
    "float8_e3m4", "float8_e4m3", "float8_e4m3fn", "float8_e4m3b11fnuz", "float8_e4m3fnuz",
    "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn",
]  # fmt: skip


@pytest.mark.parametrize("name", _DTYPES)
def test_every_dtype_has_a_type_and_back(name: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    with new_context(), ir.Location.unknown():
        made = types.tensor_type((2, 0), dtype)
        assert types.ir_type_to_tensor_type(made) == TensorType((2, 0), dtype)
        assert str(made) == f"tensor<2x0x{element_name(dtype)}>"


@pytest.mark.parametrize(
    "dtype", ["O", "U3", "S3", "M8[s]", "m8[s]", [("a", "i4")], "V4", np.longdouble]
)
def test_dtypes_without_a_type(dtype: Any) -> None:
    with pytest.raises(UnsupportedDtype, match="no StableHLO element type"):
        element_name(np.dtype(dtype))


def test_types_that_no_array_has() -> None:
    with new_context(), ir.Location.unknown():
        for text in ("!stablehlo.token", "tensor<?xf32>", "tensor<*xf32>", "tensor<2xindex>"):
            with pytest.raises(UnsupportedDtype):
                types.ir_type_to_tensor_type(ir.Type.parse(text))


@pytest.mark.parametrize("shape", [(2**62,), (2**40, 2**40), (2**70,), (2**70, 0)])
def test_sizes_beyond_63_bits(shape: tuple[int, ...]) -> None:
    with pytest.raises(ResourceExhausted, match="63 bits"):
        types.check_size(shape, np.dtype(np.float32))
    types.check_size((2**60,), np.dtype(np.float32))
    types.check_size((), np.dtype(np.float32))
