"""`Lowered.as_dot` and `Compiled.as_dot`: pictures of programs, in Graphviz's language.

Differs from JAX: a picture of a program | none of a stage | `as_dot` of a lowered and of a compiled
program, for Graphviz.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import lax
from support.dot_graph import HAS_DOT, Graph, laid_out, read_dot

X = np.ones((4, 4), np.float32)
FILE = os.path.basename(__file__)


def step(x: Any, n: Any) -> Any:
    table = np.arange(16, dtype=np.float32).reshape(4, 4)
    y = lax.fori_loop(0, 3, lambda i, c: xp.sin(c) @ c + table, x)
    return xp.sum(y) - n, plugrt.jit(scaled)(y, n)


def scaled(a: Any, n: Any) -> Any:
    return a * n


def branched(x: Any) -> Any:
    return lax.cond(xp.sum(x) > 0, lambda v: v - 1, lambda v: lax.switch(1, FUNCTIONS, v), x)


FUNCTIONS = [xp.sin, xp.cos, xp.exp]
PROGRAMS = {
    "loop": (step, X, np.float32(2)),
    "branches": (branched, X),
    "sort": (lambda x: xp.sort(x), X),
    "many results": (lambda x: [x + i for i in range(30)], X),
    "constant": (lambda x: x @ np.ones((4, 4096), np.float32), X),
    "names": (lambda **kw: kw['a "b" \\ <c> & d'] * 2, X),
}


def lowered(name: str) -> Any:
    f, *args = PROGRAMS[name]
    if name == "names":
        return plugrt.jit(f).lower(**{'a "b" \\ <c> & d': args[0]})
    return plugrt.jit(f).lower(*args)


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_both_stages_of_a_program_are_graphs(name: str) -> None:
    stage = lowered(name)
    read_dot(stage.as_dot())
    read_dot(stage.compile().as_dot())


@pytest.mark.skipif(not HAS_DOT, reason="needs Graphviz's dot")
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_graphviz_takes_both_without_a_warning(name: str) -> None:
    stage = lowered(name)
    assert laid_out(stage.as_dot()) == ""
    assert laid_out(stage.compile().as_dot()) == ""


def test_each_operation_of_the_module_is_a_node() -> None:
    """Nodes show types and lines, parameters their names; frames are regions and functions."""
    stage = lowered("loop")
    graph = read_dot(stage.as_dot())
    line = step.__code__.co_firstlineno
    assert {"x\ntensor<4x4xf32>", "n\ntensor<f32>"} <= set(graph.labels())
    loop, product = graph.find("stablehlo.while"), graph.find("stablehlo.dot_general")
    assert f"\ntensor<i32>, tensor<4x4xf32>\n{FILE}:{line + 2}" in graph.label(loop)
    assert graph.frame(product) == ("@main", "stablehlo.while: body")
    assert graph.frame(graph.find("stablehlo.compare")) == ("@main", "stablehlo.while: cond")
    assert graph.nodes[product]["tooltip"] == f"{__file__}:{line + 2}"
    assert "value = 16 elements" in "".join(graph.labels())
    written = stage.as_text().count(" stablehlo.") + stage.as_text().count(" call @")
    drawn = [label for label in graph.labels() if label.startswith(("stablehlo.", "func.call"))]
    assert len(drawn) >= written > 10


def test_edges_go_from_what_is_computed_to_what_uses_it() -> None:
    graph = read_dot(lowered("loop").as_dot())
    minus, reduced = graph.find("stablehlo.subtract"), graph.find("stablehlo.reduce")
    assert graph.edge(reduced, minus)["label"] == "0"
    assert graph.edge("n1", minus)["label"] == "1"
    assert graph.edge(graph.find("stablehlo.while"), reduced)["label"] == "0 #1"
    call, product = graph.find("func.call"), graph.find("stablehlo.multiply")
    assert "scaled" in graph.label(call)
    [returned] = [t for s, t, _ in graph.edges if s == product]
    assert graph.edge(returned, call)["style"] == "dashed"
    assert graph.frame(returned) == graph.frame(product) != graph.frame(call)


def test_the_optimised_program_has_its_instructions_and_lines() -> None:
    compiled = lowered("loop").compile()
    graph, text = read_dot(compiled.as_dot()), compiled.as_text()
    instructions = [line for line in text.splitlines() if " = " in line and "%" in line]
    assert len(graph.nodes) == len(instructions)
    for label in graph.labels():
        assert f"{label.splitlines()[1]} = " in text
    assert sum(frame[-1].startswith("entry ") for frame in graph.frames()) == 1
    assert f"{FILE}:{step.__code__.co_firstlineno + 2}" in "".join(graph.labels())
    assert [a for _, _, a in graph.edges if a.get("style") == "dashed"]


def test_constants_are_shown_where_they_are_few() -> None:
    def f(x: Any) -> Any:
        small = np.array([-1, 2, -3], np.int32)
        return x + small, x > np.array([True, False, True]), x * np.array([0.5, 3.0, -1.0])

    compiled = plugrt.jit(f).lower(np.ones(3, np.int32)).compile()
    labels = "".join(read_dot(compiled.as_dot()).labels())
    assert "\n-1, 2, -3\ns32[3]" in labels
    assert "\n0.5, 3.0, -1.0\n" in labels
    assert "4194304 elements" not in labels


def test_big_constants_are_summarised_quickly() -> None:
    def f(x: Any) -> Any:
        return x + np.arange(1 << 20, dtype=np.float32)

    stage = plugrt.jit(f).lower(np.zeros(1 << 20, np.float32))
    text = stage.as_dot() + stage.compile().as_dot()
    assert len(text) < 10_000


def test_other_compiled_things_have_pictures() -> None:
    program = plugrt.compile(lowered("sort").as_text())
    assert "sort" in "".join(read_dot(program.as_dot()).labels())
    pmapped = plugrt.pmap(lambda x: lax.psum(x, "i"), axis_name="i").lower(np.ones((2, 3), "f4"))
    assert "stablehlo.all_reduce" in "".join(read_dot(pmapped.as_dot()).labels())
    assert any("all-reduce" in label for label in read_dot(pmapped.compile().as_dot()).labels())


def test_a_program_that_computes_nothing() -> None:
    stage = plugrt.jit(lambda x: x).lower(X)
    graph: Graph = read_dot(stage.as_dot())
    assert any("return" in label for label in graph.labels())
    assert any("parameter" in label for label in read_dot(stage.compile().as_dot()).labels())
