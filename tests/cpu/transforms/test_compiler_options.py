"""Options of the compiler: for `jit`, for a compiled stage, and unknown ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from plugrt import jit
from plugrt.errors import ArgumentError, ArgumentTypeError, InvalidArgument
from plugrt.interface import CompileOptions
from support.behaviour import behaviour

X = np.arange(3, dtype=np.float32)
QUICK = {"xla_llvm_disable_expensive_passes": True}


@behaviour(13, "`jit(compiler_options=…)` compiles with them, and apart from the same without")
def test_options_of_jit(compiled_with: list[CompileOptions]) -> None:
    def f(x: Any) -> Any:
        return x * 3 + 1

    for _ in range(2):
        np.testing.assert_array_equal(jit(f, compiler_options=QUICK)(X), 3 * X + 1)
        np.testing.assert_array_equal(jit(f)(X), 3 * X + 1)
    assert [dict(o.env_overrides) for o in compiled_with] == [QUICK, {}]


@behaviour(13, "`lower().compile(compiler_options=…)` adds to the function's own, and wins")
def test_options_of_a_stage(compiled_with: list[CompileOptions]) -> None:
    lowered = jit(lambda x: x + 2, compiler_options=QUICK).lower(X)
    other = {"xla_cpu_enable_fast_math": False}
    np.testing.assert_array_equal(lowered.compile(compiler_options=other)(X), X + 2)
    lowered.compile({"xla_llvm_disable_expensive_passes": False})
    lowered.compile()
    expected = [QUICK | other, dict.fromkeys(QUICK, False), QUICK]
    assert [dict(o.env_overrides) for o in compiled_with] == expected


def test_how_hard_the_compiler_tries_is_an_option() -> None:
    efforts = {"exec_time_optimization_effort": 0.0, "optimization_level": 9, **QUICK}
    np.testing.assert_array_equal(jit(lambda x: x + 4, compiler_options=efforts)(X), X + 4)
    for name, value in {"optimization_level": 0.5, "memory_fitting_effort": True}.items():
        with pytest.raises(ArgumentTypeError, match=name):
            jit(lambda x: x + 6, compiler_options={name: value})


@behaviour(13, "an option that the compiler does not know is its error, with the option's name")
@pytest.mark.parametrize("how", ["jit", "compile"])
def test_unknown_options(how: str) -> None:
    wrong = {"no_such_option": 1}
    call: Callable[[], Any] = {
        "jit": lambda: jit(lambda x: x + 5, compiler_options=wrong)(X),
        "compile": lambda: jit(lambda x: x + 5).lower(X).compile(compiler_options=wrong),
    }[how]
    with pytest.raises(InvalidArgument, match="no_such_option"):
        call()


@behaviour(
    13,
    "what is no dict of plain values is refused at once",
    jax="JAX raises an AttributeError, or a TypeError of its bindings when it compiles",
)
@pytest.mark.parametrize("wrong", [5, [("a", 1)], {3: 4}, {"a": None}, {"a": [1]}], ids=str)
def test_wrong_compiler_options_are_refused(wrong: Any) -> None:
    with pytest.raises(ArgumentTypeError, match="compiler_options of jit"):
        jit(lambda x: x, compiler_options=wrong)
    with pytest.raises(ArgumentTypeError, match="compiler_options of compile"):
        jit(lambda x: x).lower(X).compile(wrong)


@behaviour(13, "within another traced function they are refused: a program has one set")
def test_options_of_an_inner_jit() -> None:
    inner = jit(lambda x: x + 1, compiler_options=QUICK)
    with pytest.raises(ArgumentError, match=r"has compiler_options .* outermost jit") as error:
        jit(lambda x: inner(x))(X)
    assert isinstance(error.value, ValueError)
