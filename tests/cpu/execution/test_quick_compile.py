"""Quick compilation of small programs: its options, and libraries that have none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from plugrt import config, get_backend, jit
from plugrt.errors import ConfigError, InvalidArgument
from plugrt.execution.compilation.compiler import compile_or_drop
from plugrt.interface import CompileOptions, Program
from support.behaviour import behaviour

X = np.arange(3, dtype=np.float32)
QUICK = "xla_cpu_use_fusion_emitters"


@behaviour(
    13,
    "`quick_compile_bytes` compiles small programs without fusion emitters, and others as ever",
    jax="JAX has no such setting",
)
def test_small_programs_alone(compiled_with: list[CompileOptions]) -> None:
    if get_backend().platform != "cpu":
        pytest.skip("only XLA's CPU compiler has a quicker way")
    f = jit(lambda x: x * 51 + 1)
    for most in (0, 100_000, 10):
        with config.override(quick_compile_bytes=most):
            np.testing.assert_array_equal(f(X), X * 51 + 1)
    with config.override(quick_compile_bytes=100_000):
        jit(lambda x: x * 52, compiler_options={QUICK: True})(X)
    found = [dict(options.env_overrides) for options in compiled_with]
    assert found == [{}, {QUICK: False}, {}, {QUICK: True}]


@behaviour(
    13,
    "a library that does not know the option for it compiles without; other errors stay",
    jax="JAX has no such setting",
)
def test_a_library_that_does_not_know_it() -> None:
    asked: list[CompileOptions] = []

    def compile(program: Program, options: CompileOptions) -> Any:
        asked.append(options)
        if options.env_overrides:
            raise InvalidArgument(f"No such compile option: {[*options.env_overrides]}")
        return "compiled"

    old: Any = SimpleNamespace(compile=compile)
    plain, quick = CompileOptions(), CompileOptions(env_overrides={QUICK: False})
    assert compile_or_drop(old, Program(b"", "mlir", "f"), plain, quick) == "compiled"
    assert asked == [quick, plain]
    own = CompileOptions(env_overrides={"mine": 1})
    with pytest.raises(InvalidArgument, match="mine"):
        compile_or_drop(old, Program(b"", "mlir", "f"), own, own)


@pytest.mark.parametrize("wrong", [-1, "small", 2.5, None])
def test_wrong_sizes(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="quick_compile_bytes"):
        config.update("quick_compile_bytes", wrong)
