"""Clients and their objects raise plugrt's errors for any arguments of their methods.

They run in a child process, since native code that gets a wrong value may end the process.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import lax, tree
from plugrt.errors import (
    ArgumentError,
    ArgumentTypeError,
    Internal,
    InvalidArgument,
    InvalidOperation,
    NotAnArray,
    PlugrtError,
    TracingError,
)
from plugrt.interface import CompileOptions, DeviceAssignment, ExecuteOptions, Program
from plugrt.stablehlo.bindings import hlo, ir
from plugrt.tracing import emit
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk import BackendClient
from plugrt_sdk import compiling as plugrt_sdk_compiling
from support.wrong_backend_calls import judge, run

CLIENT = plugrt.get_backend()
TEXT = b"""func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %a : tensor<4xf32> return %0 : tensor<4xf32> }"""
HOST = np.ones(4, np.float32)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("kind", ["cpu", "sdk"])
def test_backend_methods_raise_plugrt_errors(kind: str, seed: int) -> None:
    called, strange = run(kind, seed)
    assert strange == []
    assert {name.partition(".")[2] for name in called} >= {
        "buffer_from_host", "compile", "copy_to_device", "deserialize_executable", "execute",
        "lookup_device", "memory", "on_ready", "shards", "shards_from_host",
    }  # fmt: skip


def test_the_judge_notices_foreign_errors() -> None:
    assert judge({}.__getitem__, [1]) == "KeyError: 1"
    assert judge(CLIENT.lookup_device, ["a"]) is None


@pytest.mark.parametrize("semantics", [None, "text", 99, -1, [], 1.5])
def test_semantics_are_those_of_the_interface(semantics: Any) -> None:
    with pytest.raises(ArgumentTypeError, match=r"buffer_from_host .*HostBufferSemantics"):
        CLIENT.buffer_from_host(HOST, CLIENT.devices()[0], None, semantics)


@pytest.mark.parametrize(
    "wrong", [None, 3, "text", object(), [None]], ids=["None", "int", "str", "object", "list"]
)
def test_value_types_check_their_fields(wrong: Any) -> None:
    """The check comes before a library, which may read an integer as an address."""
    for make in (
        lambda: Program(wrong),
        lambda: Program(b"", wrong) if wrong != "text" else Program("text"),  # type: ignore[arg-type]
        lambda: ExecuteOptions("1" if wrong == 3 else wrong),
        lambda: ExecuteOptions(0, wrong),
        lambda: DeviceAssignment(((wrong if wrong != 3 else 3.5,),)),
    ):
        with pytest.raises(ArgumentTypeError):
            make()


def test_launch_ids_beyond_32_bits_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="does not fit 32 bits"):
        ExecuteOptions(2**31)
    assert ExecuteOptions(-(2**31), (0, np.int64(1))).launch_id == -(2**31)  # type: ignore[arg-type]


@pytest.mark.parametrize(("replicas", "partitions"), [(0, 1), (1, -1), (2**40, -(2**63)), (-1, -1)])
def test_counts_of_a_device_assignment_are_positive(replicas: int, partitions: int) -> None:
    """Earlier, the rows were made before the check, and a negative product passed as small."""
    with pytest.raises(InvalidArgument, match="one replica and one partition at least"):
        CLIENT.default_device_assignment(replicas, partitions)


def test_a_module_with_a_function_named_shape_is_no_array() -> None:
    for function in (plugrt.jit(abs), plugrt.pmap(abs)):
        for call in (function, function.lower, function.trace, function.eval_shape):
            with pytest.raises(NotAnArray, match="module 'numpy'"):
                call(np)  # type: ignore[arg-type]


@pytest.mark.parametrize("k", [[1], (1, 2), 1.5, HOST[:2], "1", None], ids=repr)
def test_a_diagonal_is_an_integer(k: Any) -> None:
    """Earlier, a list as long as the columns was broadcast; others made an invalid program."""
    for function in (xp.tril, xp.triu):
        for call in (function, plugrt.jit(function, static_argnames="k")):
            with pytest.raises(ArgumentError):
                call(np.ones((2, 3), np.float32), k=k)


def test_a_module_that_is_not_valid_raises_what_is_plugrts() -> None:
    """MLIR checks some operations only when the module is complete."""

    def unfit(x: Any) -> Any:
        return emit.wrap_one(
            hlo.broadcast_in_dim(
                emit.active_trace().mlir_type((3,), np.dtype(np.float32)),
                emit.active_trace().mlir_value(x), [0], loc=emit.active_trace().location(),
            )
        )  # fmt: skip

    with pytest.raises(TracingError, match="the trace of 'unfit' is not valid StableHLO"):
        plugrt.jit(unfit).lower(np.ones(2, np.float32))


def _parse_twice_named(*values: Any, **_: Any) -> Any:
    """Stands in for an operation's builder; MLIR's refusal of the text has a note."""
    return ir.Module.parse("func.func @f() { return }\nfunc.func @f() { return }")


def _define_twice(x: Any) -> Any:
    """Adds two functions of one name, which MLIR refuses only in the complete module."""
    body = ir.InsertionPoint(emit.active_trace().module.body)
    for _ in range(2):
        body.insert(ir.Operation.parse("func.func private @f()", source_name="mine.py"))
    return x + 1


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda x: emit.emit(_parse_twice_named, x), "redefinition of .*; note.*: see existing"),
        (_define_twice, "redefinition of .*; note at mine.py:1: see existing"),
        (
            lambda x: lax.scatter_apply(
                x, np.zeros((1, 1), np.int32), _parse_twice_named,
                lax.ScatterDimensionNumbers((), (0,), (0,)),
            ),
            "lax.scatter_apply of .*redefinition of .*; note.*: see existing",
        ),
    ],
    ids=["an operation", "a module", "a scatter"],
)  # fmt: skip
def test_the_notes_of_mlir_are_in_the_message(function: Any, says: str) -> None:
    with pytest.raises(InvalidOperation, match=says):
        plugrt.jit(function).lower(np.ones(2, np.float32))


@pytest.mark.parametrize("name", ["a" * 5000, "nul\0byte"])
def test_a_name_that_no_file_can_have_is_no_file(name: str) -> None:
    for function in (plugrt.load_program, plugrt.compile):
        with pytest.raises(FileNotFoundError, match="No such file, and no program"):
            function(name)
        with pytest.raises(FileNotFoundError, match="No such file: "):
            function(Path(name))


FAULTS = [
    TypeError("t"), ValueError("v"), AttributeError("a"), KeyError("k"), IndexError("i"),
    ZeroDivisionError("z"), AssertionError("s"), BufferError("b"),
]  # fmt: skip


def fail(error: Exception) -> Any:
    """Returns a callable that raises the error, without a frame of this file's code."""
    return Mock(side_effect=error)


@pytest.mark.parametrize("error", FAULTS, ids=repr)
def test_a_fault_after_the_checks_does_not_blame_the_caller(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier, the message blamed argument 0, the program, and showed its code."""
    client = BackendClient(NumpyBackend())
    program = Program(TEXT)
    monkeypatch.setattr(plugrt_sdk_compiling, "parse_program", fail(error))
    raw = Mock(compile_and_load=fail(error), wraps=None)
    monkeypatch.setattr(CLIENT, "require_open", lambda: raw)
    for each in (client, CLIENT):
        with pytest.raises(Internal) as caught:
            each.compile(program, CompileOptions())
        assert caught.value.__cause__ is error
        assert "stablehlo.add" not in str(caught.value)
        assert "cannot be called with" not in str(caught.value)
        assert not isinstance(caught.value, ArgumentError)


def test_a_program_is_shown_without_its_code() -> None:
    assert repr(Program(b"secret")) == "Program(format='mlir', name='main', callbacks={})"


@pytest.mark.parametrize("checked", [True, False])
def test_errors_belong_to_the_decorated_function_that_calls(
    checked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error in a helper belongs to the decorated function that calls it, else to the user."""
    name = f"some_package_{checked}"
    folder = tmp_path / name
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "helper.py").write_text("def look(x):\n    return x.no_such_attribute\n")
    decorator = "@with_argument_errors" if checked else ""
    (folder / "api.py").write_text(
        "from plugrt.frames.argument_errors import with_argument_errors\n"
        f"from {name}.helper import look\n{decorator}\ndef ask(x):\n    return look(x)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    ask = importlib.import_module(f"{name}.api").ask
    try:
        with pytest.raises(PlugrtError if checked else AttributeError):
            tree.map(ask, [3])
    finally:
        for module in [m for m in sys.modules if m.startswith(name)]:
            del sys.modules[module]
