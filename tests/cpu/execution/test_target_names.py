"""The custom call targets that a program names, in each of a program's formats."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import ffi
from plugrt.execution.executables.custom_call_targets import named_targets
from plugrt.interface import Program
from plugrt.stablehlo import modules

NAMES = ["scale_1", "scale_10", "a_scale_1", 'a "name"\\', "größe", "x" * 200, "a.b-c$d"]
FORMS = ("text", "bytecode", "artifact")


def program(names: list[str], form: str) -> Program:
    """Returns a program that calls these targets."""
    kind = plugrt.ShapeDtypeStruct((3,), np.dtype(np.float32))

    def calls(x: Any) -> Any:
        for name in names:
            x = ffi.ffi_call(name, kind)(x)
        return x

    text = plugrt.jit(calls).lower(np.ones(3, np.float32)).as_text()
    module = modules.parse(text)
    if form == "text":
        return Program(text.encode())
    return Program(
        modules.bytecode(module) if form == "bytecode" else modules.portable_artifact(module)
    )


@pytest.mark.parametrize("form", FORMS)
def test_each_name_is_found_and_no_part_of_one(form: str) -> None:
    """Earlier, a program failed over a refused handler whose name was part of its own target's."""
    for name in NAMES:
        assert named_targets(program([name], form), NAMES) == [name]
    assert named_targets(program(NAMES, form), [*NAMES, "scale", "name"]) == NAMES
    assert named_targets(program([], form), NAMES) == []


def test_bytecode_that_ends_too_early_is_left_to_the_compiler() -> None:
    code = program(["scale_1"], "bytecode").code
    for end in range(4, len(code)):
        assert set(named_targets(Program(code[:end] + b"scale_10"), ["scale_1"])) <= {"scale_1"}
    assert named_targets(Program(b"ML\xefRscale_1"), ["scale_1"]) == ["scale_1"]


def test_names_in_hlo() -> None:
    code = b"\xe2\x01\x05other\x10"
    assert named_targets(Program(code, "hlo"), NAMES) == []
    for name in NAMES:
        field = b"\xe2\x01" + _length(name) + name.encode() + b"\x10"
        assert named_targets(Program(field, "hlo"), NAMES) == [name]


def _length(name: str) -> bytes:
    size = len(name.encode())
    return bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])
