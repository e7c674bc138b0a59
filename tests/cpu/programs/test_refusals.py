"""Checks refuse programs that would end the process inside a compiler."""

from __future__ import annotations

import random
import time
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt.errors import ProgramError
from plugrt.stablehlo import refusals
from plugrt.stablehlo.refusals import DEEPEST_CALLS
from plugrt.tracing import trace_function

KIND = "tensor<2xf32>"


def function(name: str, *called: str, body: bool = True) -> str:
    if not body:
        return f"func.func private @{name}({KIND}) -> {KIND}\n"
    seen = "public" if name == "main" else "private"
    lines = [f"func.func {seen} @{name}(%v0: {KIND}) -> {KIND} {{"]
    lines += [f"%v{i + 1} = call @{c}(%v{i}) : ({KIND}) -> {KIND}" for i, c in enumerate(called)]
    return "\n".join([*lines, f"return %v{len(called)} : {KIND}", "}\n"])


def module(*functions: str) -> str:
    return "module @m {\n" + "".join(functions) + "}"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (module(function("main", "main")), "calls itself .*main calls main"),
        (module(function("main", "f"), function("f", "f")), "f calls f"),
        (module(function("main", "f"), function("f", "g"), function("g", "f")), "calls itself"),
        (module(function("main"), function("f", "g"), function("g", "f")), "calls itself"),
        (module(function("main", "f"), function("f", body=False)), r"'main' calls \['f'\]"),
        (module(function("main", body=False)), "declares main"),
    ],
)
def test_endless_and_empty_calls_are_refused(text: str, says: str) -> None:
    with pytest.raises(ProgramError, match=says):
        plugrt.compile(text)


def chain(depth: int) -> str:
    names = ["main", *(f"f{i}" for i in range(depth))]
    return module(*(function(n, m) for n, m in pairwise(names)), function(names[-1]))


def test_calls_that_nest_too_deep_are_refused() -> None:
    """Earlier, jaxlib ended the process at a depth of 187 functions."""
    x = np.float32([1, 2])
    np.testing.assert_array_equal(np.asarray(plugrt.compile(chain(DEEPEST_CALLS))(x)), x)
    for depth in (DEEPEST_CALLS + 1, 5000):
        with pytest.raises(ProgramError, match=rf"call each other {depth} deep.*inline=True"):
            plugrt.compile(chain(depth))


@pytest.mark.parametrize("inline", [False, True])
def test_traced_calls_that_nest_too_deep_are_refused(
    inline: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (refusals, trace_function):
        monkeypatch.setattr(module, "DEEPEST_CALLS", 20)

    def around(inner: Any) -> Any:
        return plugrt.jit(lambda v: inner(v), inline=inline)

    x = np.float32([1, 2])
    call = plugrt.jit(lambda v: v + 1)
    for _ in range(20):
        call = around(call)
    np.testing.assert_array_equal(np.asarray(call(x)), x + 1)
    if not inline:
        with pytest.raises(ProgramError, match="call each other 21 deep"):
            around(call)(x)


def test_random_graphs_of_calls() -> None:
    chance = random.Random(11)
    for _ in range(30):
        count = chance.randint(2, 6)
        names = ["main", *(f"f{i}" for i in range(1, count))]
        order = {name: i for i, name in enumerate(names)}
        calls = {n: [chance.choice(names) for _ in range(chance.randrange(3))] for n in names}
        if all(order[c] > order[n] for n, called in calls.items() for c in called):
            continue
        downward = {n: [c for c in called if order[c] > order[n]] for n, called in calls.items()}
        text = module(*(function(n, *called) for n, called in downward.items()))
        x = np.float32([1, 2])
        np.testing.assert_array_equal(np.asarray(plugrt.compile(text)(x)), x)
        circular = {**downward, names[-1]: ["main"], "main": [names[-1]]}
        with pytest.raises(ProgramError, match="calls itself"):
            plugrt.compile(module(*(function(n, *called) for n, called in circular.items())))


def test_many_ways_to_one_function_are_looked_at_once() -> None:
    names = ["main", *(f"f{i}" for i in range(60)), "main"]
    text = module(*(function(n, m, m) for n, m in pairwise(names)))
    start = time.perf_counter()
    with pytest.raises(ProgramError, match="calls itself"):
        plugrt.compile(text)
    assert time.perf_counter() - start < 100  # there are 2**60 paths


@pytest.mark.parametrize("deep", [501, 50_000])
@pytest.mark.parametrize("kind", ["attribute", "module", "region", "type"])
def test_deep_nesting_is_refused(kind: str, deep: int) -> None:
    text = {
        "attribute": "module attributes {a = " + "[" * deep + "]" * deep + "} {}",
        "module": "module {" * deep + "}" * deep,
        "region": module(function("main")).replace("return", '"x.y"() ({' * deep + "}) : () -> ()"),
        "type": "module { func.func @main() -> " + "tuple<" * deep + ">" * deep + "}",
    }[kind]
    with pytest.raises(ProgramError, match="nests deeper than 500"):
        plugrt.compile(text)


def test_brackets_in_strings_and_comments_are_no_nesting() -> None:
    head = "// " + "[" * 900 + '\nmodule @m attributes {mhlo.a = "' + "(" * 900 + '"} {'
    text = module(function("main")).replace("module @m {", head)
    x = np.float32([1, 2])
    np.testing.assert_array_equal(np.asarray(plugrt.compile(text)(x)), x)
