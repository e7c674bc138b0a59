"""DOT text with any label; HLO modules are read from their bytes, or refused."""

from __future__ import annotations

import inspect
import random
import sys

import pytest

from plugrt.errors import Unimplemented
from plugrt.interface import CompileOptions, Executable, Program
from plugrt.stablehlo.dot import DotWriter
from plugrt.stablehlo.hlo import hlo_graph, optimized_graph
from plugrt.stablehlo.module_graph import module_graph
from plugrt.stablehlo.modules import parse
from plugrt.wire.protobuf import integer, message
from support.dot_graph import HAS_DOT, laid_out, read_dot
from support.fake_topology import FakeExecutable

LABELS = [
    'a "quoted" name', "back\\slash", "trailing \\", "<script>alert(1)</script>", "a & b &lt; c",
    "tab\tand\nnew line", "NUL\0 bell\a", "}; digraph evil {", "größer → 大", "\\N \\G \\n", "",
]  # fmt: skip


@pytest.mark.parametrize("text", LABELS)
def test_any_text_is_shown_as_it_is(text: str) -> None:
    dot = DotWriter(text)
    dot.open_cluster(text)
    first = dot.node(["op", text], tooltip=text)
    dot.close_cluster()
    dot.edge(first, dot.node([text]), text)
    graph = read_dot(dot.text())
    printable = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    assert graph.label(first) == "\n".join(["op", printable][: 2 if text else 1])
    assert graph.frames() == [(printable,)]
    assert len(graph.nodes) == 2


def test_any_text_of_random_characters() -> None:
    draw = random.Random(5)
    for _ in range(300):
        text = "".join(draw.choice('ab"\\\n\0&;{}<>[]=|é') for _ in range(draw.randint(0, 30)))
        dot = DotWriter(text)
        node = dot.node([text], tooltip=text)
        dot.edge(node, node, text)
        assert len(read_dot(dot.text()).nodes) == 1


@pytest.mark.skipif(not HAS_DOT, reason="needs Graphviz's dot")
def test_graphviz_takes_any_text() -> None:
    dot = DotWriter("all")
    for text in LABELS:
        dot.open_cluster(text)
        node = dot.node([text], tooltip=text)
        dot.edge(node, node, text, returned=True)
    for _ in LABELS:
        dot.close_cluster()
    assert laid_out(dot.text()) == ""


def test_long_lines_are_cut() -> None:
    dot = DotWriter("long")
    node = dot.node(["x" * 1000])
    assert len(read_dot(dot.text()).label(node)) <= 60


SHAPE = message(3, integer(2, 11) + message(3, b"\x02\x03"))
MODULE = message(3, message(1, b"main") + integer(5, 1) + integer(6, 8) + message(
    2, message(1, b"x") + message(2, b"parameter") + SHAPE + integer(35, 7)
) + message(
    2, message(1, b"y") + message(2, b"add") + SHAPE + integer(35, 8) + message(36, b"\x07\x07")
    + message(7, message(3, b"/home/me/model.py") + integer(4, 12))
)) + integer(6, 1)  # fmt: skip


def test_an_hlo_module_of_a_few_fields() -> None:
    graph = read_dot(hlo_graph(Program(MODULE, "hlo", "m")))
    assert graph.labels() == ["parameter 0\n%x\nf32[2,3]", "add\n%y\nf32[2,3]\nmodel.py:12"]
    assert [(s, t, a["label"]) for s, t, a in graph.edges] == [("n0", "n1", "0"), ("n0", "n1", "1")]
    assert graph.nodes["n1"]["tooltip"] == "/home/me/model.py:12"
    assert graph.frames() == [("entry main",)]


def test_an_operand_that_is_not_there_is_named() -> None:
    dangling = MODULE.replace(message(36, b"\x07\x07"), message(36, b"\x07\x05"))
    with pytest.raises(Unimplemented, match="%y names the operand 5, which is not there"):
        hlo_graph(Program(dangling, "hlo", "m"))


def test_bytes_that_are_no_hlo_module_are_refused() -> None:
    draw = random.Random(3)
    refused = 0
    for _ in range(400):
        content = bytearray(MODULE)
        for _ in range(draw.randint(1, 4)):
            content[draw.randrange(len(content))] = draw.randrange(256)
        try:
            code = bytes(content[: draw.randint(1, len(content))])
            read_dot(hlo_graph(Program(code, "hlo", "damaged")))
        except Unimplemented as error:
            assert "'damaged' is not an HLO module" in str(error)  # noqa: PT017 others are drawn
            refused += 1
    assert refused > 100


class Other(FakeExecutable):
    """Returns its optimised program in any format."""

    def __init__(self, program: Program) -> None:
        super().__init__(program, CompileOptions())

    def optimized_program(self) -> Program:
        return self.program


class Mute(Other):
    """Has no optimised program."""

    optimized_program = Executable.optimized_program


def test_programs_of_other_formats() -> None:
    module = (
        b"func.func public @main(%a: tensor<2xf32>) -> tensor<2xf32> {return %a : tensor<2xf32>}"
    )
    graph = read_dot(optimized_graph(Other(Program(module, "mlir", "m"))))
    assert graph.labels() == ["argument 0\ntensor<2xf32>", "func.return\n-:1"]
    with pytest.raises(Unimplemented, match="in the format 'ptx'"):
        optimized_graph(Other(Program(b"", "ptx", "m")))
    with pytest.raises(Unimplemented, match="optimized_program"):
        optimized_graph(Mute(Program(module, "mlir", "m")))


def test_deep_nesting_is_no_recursion() -> None:
    def nested(depth: int) -> str:
        if depth == 0:
            return "stablehlo.return %x : tensor<f32>"
        return f"""%r{depth} = "stablehlo.if"(%p) ({{
            {nested(depth - 1)}
        }}, {{ stablehlo.return %x : tensor<f32> }}) : (tensor<i1>) -> tensor<f32>
        stablehlo.return %r{depth} : tensor<f32>"""

    text = nested(200).rpartition("stablehlo.return")[0]
    module = parse(f"""func.func public @main(%x: tensor<f32>, %p: tensor<i1>) -> tensor<f32> {{
        {text} return %r200 : tensor<f32> }}""")
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 60)
    try:
        drawn = module_graph(module, "deep")
    finally:
        sys.setrecursionlimit(limit)
    assert max(map(len, read_dot(drawn).frames())) == 201
