"""Programs in every format are loaded, and each kind of invalid one is refused."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import plugrt
from plugrt.errors import (
    ArgumentMismatch,
    InvalidArgument,
    NotAnArray,
    ProgramError,
    UnknownPlatform,
)
from plugrt.stablehlo.modules import parse, portable_artifact
from support.jax_oracle import jax

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
W = np.arange(6, dtype=np.float32).reshape(3, 2)

DOUBLE = """module @double {
  func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
    %0 = stablehlo.add %x, %x : tensor<3xf32>
    return %0 : tensor<3xf32>
  }
}
"""


def model(x: Any, w: Any) -> Any:
    return jnp.tanh(x @ w).sum(0), jax.nn.softmax(x)


@pytest.fixture(scope="module")
def lowered() -> Any:
    return jax.jit(model).lower(X, W)


@pytest.fixture(scope="module")
def expected() -> list[np.ndarray[Any, Any]]:
    return [np.asarray(o) for o in jax.jit(model)(X, W)]


def _check(program: Any, expected: list[np.ndarray[Any, Any]]) -> None:
    outputs = plugrt.compile(program)(X, W)
    assert len(outputs) == len(expected)
    for found, wanted in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-6)


def test_text_that_jax_writes(lowered: Any, expected: Any, tmp_path: Path) -> None:
    _check(lowered.as_text(), expected)
    path = tmp_path / "model.mlir"
    path.write_text(lowered.as_text())
    _check(path, expected)
    _check(str(path), expected)


def test_a_module_of_jaxlibs(lowered: Any, expected: Any) -> None:
    _check(lowered.compiler_ir(), expected)


@pytest.mark.parametrize("version", [(1, 0, 0), (1, 9, 0), None])
def test_portable_artifacts_of_any_version(version: Any) -> None:
    artifact = portable_artifact(parse(DOUBLE), version)
    result = plugrt.compile(artifact)(np.float32([1, 2, 3]))
    np.testing.assert_array_equal(np.asarray(result), [2, 4, 6])


def test_chlo_in_a_program_does_not_reach_the_backend() -> None:
    text = DOUBLE.replace(
        "stablehlo.add %x, %x : tensor<3xf32>", "chlo.erf %x : tensor<3xf32> -> tensor<3xf32>"
    )
    found = np.asarray(plugrt.compile(text)(np.float32([0, 1, -1])))
    np.testing.assert_allclose(found, [0, 0.8427008, -0.8427008], rtol=1e-5)


def test_arguments_may_be_anywhere_and_python_scalars() -> None:
    compiled = plugrt.compile(DOUBLE, device=plugrt.devices()[1])
    elsewhere = plugrt.device_put(np.float32([1, 2, 3]), plugrt.devices()[2])
    result = compiled(elsewhere)
    assert result.device is plugrt.devices()[1]
    np.testing.assert_array_equal(np.asarray(result), [2, 4, 6])
    scalar = plugrt.compile(DOUBLE.replace("3xf32", "f32"))
    assert float(scalar(2)) == 4.0


def test_a_program_runs_where_its_arguments_are_unless_its_device_is_named() -> None:
    devices, host = plugrt.devices(), np.float32([1, 2, 3])
    there = plugrt.device_put(host, devices[2])
    mesh = plugrt.sharding.Mesh(np.array(devices[1:4]), ("i",))
    over = plugrt.sharding.NamedSharding(mesh, plugrt.sharding.PartitionSpec("i"))
    divided = plugrt.device_put(host, over)
    compiled = plugrt.compile(DOUBLE)
    executable = plugrt.compile(compiled.serialize())
    for _ in range(2):
        assert compiled(there).devices() == {devices[2]}
    for program in (compiled, executable):
        assert program(host).devices() == program(plugrt.device_put(host)).devices() == {devices[0]}
        with pytest.raises(ArgumentMismatch, match=r"(?s)several devices.*parameter 0: on Na"):
            program(divided)
    with pytest.raises(ArgumentMismatch, match=r"committed elsewhere(?s:.*)\n  parameter 0: on "):
        executable(there)
    for named in (DOUBLE, compiled.serialize()):
        moving = plugrt.compile(named, device=devices[1])
        assert moving(there).devices() == moving(divided).devices() == {devices[1]}


def test_a_program_follows_to_another_backend_unless_its_own_is_named() -> None:
    try:
        other = plugrt.devices("numpy")[0]
    except UnknownPlatform:
        pytest.skip("no numpy backend here")
    there = plugrt.device_put(np.float32([1, 2, 3]), other)
    assert plugrt.compile(DOUBLE)(there).devices() == {there.device}
    named = plugrt.compile(DOUBLE, backend=plugrt.default_backend())
    with pytest.raises(ArgumentMismatch, match=r"parameter 0: on SingleDeviceSharding\(numpy:0\)"):
        named(there)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), r"takes 1 arguments \(float32\[3\]\); called with 0"),
        ((X, X), "called with 2"),
        ((np.float32([1, 2]),), r"parameter 0: takes float32\[3\], called with float32\[2\]"),
        ((np.float64([1, 2, 3]),), r"takes float32\[3\], called with float64\[3\]"),
    ],
)
def test_wrong_arguments_are_named(arguments: tuple[Any, ...], says: str) -> None:
    with pytest.raises(ArgumentMismatch, match=says):
        plugrt.compile(DOUBLE)(*arguments)


def test_an_argument_that_is_no_array_is_named() -> None:
    with pytest.raises(NotAnArray, match="parameter 0 of program 'main'"):
        plugrt.compile(DOUBLE)("three")


def test_a_parsers_complaint_has_line_and_column(tmp_path: Path) -> None:
    path = tmp_path / "broken.mlir"
    path.write_text(DOUBLE.replace("tensor<3xf32>\n    return", "tensor<3xf33>\n    return"))
    with pytest.raises(ProgramError, match=r"broken\.mlir:3:\d+") as raised:
        plugrt.load_program(path)
    assert raised.value.line == 3


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (b"", "empty"),
        ("\n \n", "empty"),
        (b"ML\xefR garbage that is no bytecode", "bytecode|deserialize|version"),
        (b"\x00\x01\x02\xff\xfe", "neither StableHLO text nor MLIR bytecode"),
        ("module {\n}", "no function 'main'"),
        (3.5, "of type float is not a program"),
        (None, "of type NoneType is not a program"),
        (
            "func.func public @main(%x: tensor<?xf32>) -> tensor<?xf32> "
            "{ return %x : tensor<?xf32> }",
            "dynamic",
        ),
    ],
)
def test_sources_that_are_no_programs_are_refused(source: Any, says: str) -> None:
    with pytest.raises(ProgramError, match=says):
        plugrt.compile(source)


def test_a_truncated_artifact_is_refused_quietly(capfd: pytest.CaptureFixture[str]) -> None:
    artifact = portable_artifact(parse(DOUBLE))
    with pytest.raises(ProgramError):
        plugrt.load_program(artifact[: len(artifact) // 2])
    assert capfd.readouterr().err == ""


def test_a_folder_and_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="is a folder"):
        plugrt.load_program(tmp_path)
    with pytest.raises(FileNotFoundError):
        plugrt.load_program(tmp_path / "nosuch.mlir")
    with pytest.raises(FileNotFoundError, match=r"no program: .*'stablehlo.add'"):
        plugrt.load_program("stablehlo.add")


def test_a_device_or_a_backend_not_both() -> None:
    with pytest.raises(InvalidArgument, match="not both"):
        plugrt.compile(DOUBLE, device=plugrt.devices()[0], backend="cpu")


def test_only_a_file_is_a_program(tmp_path: Path) -> None:
    """Opening a FIFO would wait for a writer, which may never come."""
    (tmp_path / "large").touch()
    os.truncate(tmp_path / "large", 2**31 + 1)
    os.mkfifo(tmp_path / "fifo")
    wrong = {
        "/dev/zero": "is a character device", "/dev/null": "is a character device",
        str(tmp_path / "fifo"): "is a FIFO", str(tmp_path / "large"): "more than 2147483648 bytes",
    }  # fmt: skip
    for path, says in wrong.items():
        with pytest.raises(ProgramError, match=f"{path}: it .*{says}.*of 2 GiB at most"):
            plugrt.load_program(path)
    with pytest.raises(FileNotFoundError):
        plugrt.load_program("no\0file")


def test_an_open_pipe_may_hold_a_program() -> None:
    end, start = os.pipe()
    os.write(start, b"module {}")
    os.close(start)
    with open(end, "rb"):
        assert plugrt.load_program(f"/dev/fd/{end}").code == b"module {}"
