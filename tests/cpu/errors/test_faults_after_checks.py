"""An internal error after the checks of arguments is not blamed on the caller, at each mark.

Each case makes a function that is called within a marked one raise what Python raises for a wrong
argument. Without its mark the error would be an `ArgumentError`.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

import plugrt
from plugrt import lax
from plugrt.capi.loading.function_table import Table
from plugrt.errors import ArgumentError, Internal
from plugrt.execution.compilation import compiler
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import CompileOptions, Program
from plugrt.plugins.starting import loading, starting
from plugrt_cpu import interrupts
from plugrt_sdk import compiling

ROOT = Path(__file__).parents[3]
PROGRAM = Program(b"func.func @main() { return }")
PARTS: dict[str, Any] = {
    "compute_narrow_types": compiler, "load": starting, "as_artifact": compiling
}  # fmt: skip
"""The first functions that the marked ones call, each with the module that has it."""
CASES: dict[str, Callable[[Any], tuple[Callable[..., Any], tuple[Any, ...]]]] = {
    "function_table.py call": lambda failing: (
        Table.call,
        (Mock(prefix="PJRT_", slots={"Client_Devices": failing}), "Client_Devices"),
    ),
    "starting.py start": lambda failing: (
        starting.start,
        (SimpleNamespace(client=None), failing),
    ),
    "loading.py load": lambda failing: (
        loading.load,
        (
            Mock(plugin=None, failure=None, state=None),
            SimpleNamespace(log=SimpleNamespace(step=failing)),
        ),
    ),
    "compiler.py compile_program": lambda failing: (
        compiler.compile_program,
        (plugrt.get_backend(), PROGRAM, CompileOptions()),
    ),
    "interrupts.py run_uninterrupted": lambda failing: (interrupts.run_uninterrupted, (failing,)),
    "compiling.py compile_program": lambda failing: (
        compiling.compile_program,
        (Mock(), (), PROGRAM, CompileOptions(), ()),
    ),
}
"""For each marked function: how it is called so that ``failing()`` is called within it."""


def test_each_mark_has_a_case() -> None:
    marked = {
        f"{path.name} {node.name}"
        for folder in ("runtime/src", "plugins", "plugin_sdk/src")
        for path in (ROOT / folder).rglob("*.py")
        if "after_checks" in (text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef)
        if any(getattr(mark, "id", "") == "after_checks" for mark in node.decorator_list)
    }
    assert marked == CASES.keys()


@pytest.mark.parametrize("error", [TypeError("t"), ValueError("v"), KeyError("k")], ids=repr)
@pytest.mark.parametrize("name", CASES)
def test_a_fault_after_the_checks_does_not_blame_the_caller(
    name: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = Mock(side_effect=error)
    function, arguments = CASES[name](failing)
    for part, module in PARTS.items():
        monkeypatch.setattr(module, part, failing)
    with pytest.raises(Internal, match="not of the call") as caught:
        with_argument_errors(function)(*arguments)
    assert caught.value.__cause__ is error
    assert not isinstance(caught.value, ArgumentError)
    assert failing.called


@pytest.mark.usefixtures("unraisable")  # pytest's own hook needs more frames than are left
@pytest.mark.parametrize("spare", range(60, 180, 7))
def test_functions_that_are_nested_too_deep_are_no_wrong_argument(spare: int) -> None:
    """`RecursionError` arrives as it is, wherever it comes: it was an `ArgumentTypeError`."""

    def nested(x: Any) -> Any:
        return lax.cond(x[0] > 0, nested, nested, x)

    x, before = plugrt.device_put([1.0]), sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + spare)
    try:
        with pytest.raises(RecursionError):
            plugrt.jit(lambda v: nested(v))(x)
    finally:
        sys.setrecursionlimit(before)
