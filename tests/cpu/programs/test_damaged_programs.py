"""Attributes of any kind in place of a name: plugrt's error, or the right result."""

from __future__ import annotations

import random

import numpy as np
import pytest

import plugrt
from plugrt.errors import PlugrtError, ProgramError
from plugrt.interface import Program
from plugrt.programs.parsing import parse_program

MAIN = """func.func {visibility} @{name}(%x: tensor<3xf32>) -> tensor<3xf32> {{
  %0 = stablehlo.add %x, %x : tensor<3xf32>
  return %0 : tensor<3xf32>
}}"""
VALUES = (
    "7 : i32", "unit", "[1, 2]", '"text"', "@main", "{a = 1 : i8}", "dense<1> : tensor<2xi32>",
    "f32", "1.5 : f64", "true", '["main"]', "affine_map<(d0) -> (d0)>", "array<i64: 1, 2>",
)  # fmt: skip
NAMES = ("sym_name", "function_type", "sym_visibility", "arg_attrs", "res_attrs", "main")
OPERATIONS = (
    "%{} = stablehlo.constant {{{}}} dense<1> : tensor<i32>",
    "%{} = stablehlo.create_token {{{}}} : !stablehlo.token",
    "%{} = builtin.unrealized_conversion_cast to i32 {{{}}}",
    '"foo.bar{}"() {{{}}} : () -> ()',
)
"""Operations that may have the attributes; the last is of an unknown dialect."""


@pytest.mark.parametrize("name", ["sym_name", "sym_name = [1]", "sym_name = 7 : i32"])
def test_a_name_that_is_no_string(name: str) -> None:
    text = f"module {{ %c = stablehlo.constant {{{name}}} dense<1> : tensor<i32> }}"
    with pytest.raises(ProgramError, match="no function 'main' to run; it has none"):
        parse_program(Program(text.encode()))


def _module(choose: random.Random) -> str:
    parts = []
    for i in range(choose.randint(0, 3)):
        attributes = ", ".join(
            f"{name} = {choose.choice(VALUES)}"
            for name in choose.sample(NAMES, choose.randint(0, 3))
        )
        parts.append(choose.choice(OPERATIONS).format(f"v{i}", attributes))
    for name in choose.choice((("main",), (), (), ("other",), ("other", "main"))):
        visibility = choose.choice(("public", "private", ""))
        parts.append(MAIN.format(visibility=visibility, name=name))
    choose.shuffle(parts)
    head = f" attributes {{a.b = {choose.choice(VALUES)}}}" if choose.random() < 0.3 else ""
    return f"module{head} {{\n" + "\n".join(parts) + "\n}"


@pytest.mark.parametrize("seed", range(8))
def test_random_attributes(seed: int) -> None:
    choose = random.Random(seed)
    for _ in range(40):
        text = _module(choose)
        try:
            module, inputs, results = parse_program(Program(text.encode()))
        except PlugrtError:
            continue
        assert len(inputs) == len(results) == 1, text
        assert "@main" in str(module)


@pytest.mark.parametrize("seed", range(2))
def test_random_attributes_compiled(seed: int) -> None:
    choose = random.Random(100 + seed)
    for _ in range(5):
        try:
            result = plugrt.compile(_module(choose))(np.float32([1, 2, 3]))
        except PlugrtError:
            continue
        assert np.asarray(result).tolist() == [2, 4, 6]
