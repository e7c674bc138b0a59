"""Types of parameters read from the optimised program, against those that the module states."""

from __future__ import annotations

import re
from collections.abc import Iterator

import ml_dtypes
import numpy as np
import pytest

from plugrt.capi import create_client, load_library
from plugrt.interface import (
    Client,
    CompileOptions,
    DeviceAssignment,
    Executable,
    Program,
    TensorType,
)
from plugrt.programs.executables import parameter_types
from plugrt.wire.hlo_proto import PRIMITIVE_TYPES, read_module, shape_proto
from plugrt.wire.protobuf import integer, message, messages
from support.requirements import cannot
from support.shown_program import Shown
from support.xla_cpu import library_path, program

TYPES = {
    "i1": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "ui8": "uint8", "ui16": "uint16", "ui32": "uint32", "ui64": "uint64",
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64",
    "complex<f32>": "complex64", "complex<f64>": "complex128",
    "f8E5M2": "float8_e5m2", "f8E4M3FN": "float8_e4m3fn", "i4": "int4", "ui4": "uint4",
}  # fmt: skip


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    path = library_path()
    if path is None:
        cannot("the wheel xla-cpu-pjrt is not installed")
    made = create_client(load_library(path), {}, name="xla_cpu")
    yield made
    made.close()


def compiled(client: Client, program: Program) -> Executable:
    options = CompileOptions(device_assignment=DeviceAssignment(((0,),)))
    return client.compile(program, options).executable


@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        ("f32", (2, 3)),
        ("f64", ()),
        ("i8", (0, 5)),
        ("ui16", (7,)),
        ("bf16", (2, 1, 300)),
        ("i1", (3,)),
    ],
)
def test_a_shape_is_written_as_xla_writes_it(
    client: Client, kind: str, shape: tuple[int, ...]
) -> None:
    tensor = f"tensor<{''.join(f'{n}x' for n in shape)}{kind}>"
    made = compiled(client, program("return %a : " + tensor, f"%a: {tensor}", tensor))
    [program_shape] = messages(read_module(made.optimized_program()), 4)
    [written] = messages(program_shape, 1)
    dtype = np.dtype(getattr(ml_dtypes, TYPES[kind], None) or TYPES[kind])
    assert shape_proto(TensorType(shape, dtype)) == bytes(written)


@pytest.mark.parametrize("kind", TYPES)
def test_every_type_that_the_library_compiles(client: Client, kind: str) -> None:
    """The first parameter is not used: it must still be present."""
    tensor = f"tensor<2x3x{kind}>"
    made = compiled(
        client, program("return %b : tensor<f32>", f"%a: {tensor}, %b: tensor<f32>", "tensor<f32>")
    )
    expected = np.dtype(getattr(ml_dtypes, TYPES[kind], None) or TYPES[kind])
    assert parameter_types(made) == (
        TensorType((2, 3), expected),
        TensorType((), np.dtype(np.float32)),
    )


def test_no_parameters(client: Client) -> None:
    body = "%0 = stablehlo.constant dense<1.0> : tensor<f32> return %0 : tensor<f32>"
    assert parameter_types(compiled(client, program(body, "", "tensor<f32>"))) == ()


def test_numbers_are_those_of_jaxlib() -> None:
    xla_client = pytest.importorskip("jaxlib.xla_client")
    theirs = {int(m.value): n for n, m in xla_client.PrimitiveType.__members__.items()}
    for number, name in PRIMITIVE_TYPES.items():
        kind = {"bool": "PRED", "bfloat16": "BF16"}.get(name, name.upper())
        short = re.sub(r"^(U?)INT|^FLOAT|^COMPLEX", lambda m: _LETTER[m[0]], kind)
        assert theirs.get(number, short) == short.replace("_", "")


_LETTER = {"UINT": "U", "INT": "S", "FLOAT": "F", "COMPLEX": "C"}


FLOATS = message(1, integer(2, 11) + integer(3, 5) + integer(3, 7))  # dimensions not packed
MODULE = message(4, FLOATS)


@pytest.mark.parametrize(
    "given",
    [
        None,
        Program(b"anything", "text"),
        Program(b"", "hlo"),
        Program(b"\xff\xff", "hlo"),
        Program(MODULE, "hlo_with_config"),
        Program(MODULE[:-1], "hlo"),
        Program(message(4, message(1, integer(2, 13))), "hlo"),
    ],
    ids=["nothing", "format", "empty", "malformed", "other message", "cut", "tuple"],
)
def test_unreadable_parameters_are_unknown(given: Program | None) -> None:
    assert parameter_types(Shown(given)) is None


def test_both_forms_of_hlo() -> None:
    expected = (TensorType((5, 7), np.dtype(np.float32)),)
    assert parameter_types(Shown(Program(MODULE, "hlo"))) == expected
    whole = Program(message(1, MODULE), "hlo_with_config")
    assert parameter_types(Shown(whole)) == expected


def test_parts_are_not_taken_for_the_whole() -> None:
    parts = Shown(Program(MODULE, "hlo"))
    parts.num_partitions = 2
    assert parameter_types(parts) is None
