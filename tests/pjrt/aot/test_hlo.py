"""jaxlib's analyses of the optimised program of a library that prints no text itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import plugrt
from plugrt.errors import InvalidArgument, Unimplemented
from plugrt.interface import CompileOptions, Executable, LoadedExecutable, Program
from plugrt.stablehlo.hlo import ESTIMATE, cost_analysis, optimized_graph, optimized_text
from plugrt.wire.protobuf import integer, message
from support.changed_headers import rewrite_header
from support.fake_topology import FakeExecutable
from support.xla_cpu import needs_library

pytestmark = needs_library

PROGRAM = """
func.func public @main(%a: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0]
    : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
"""


@pytest.fixture(scope="module")
def product() -> LoadedExecutable:
    return plugrt.compile(PROGRAM, backend="xla_cpu").runtime_executable()


class Mute(FakeExecutable):
    """An executable that has only a program, without figures and text."""

    def __init__(self, program: Program) -> None:
        super().__init__(program, CompileOptions())

    cost_analysis = Executable.cost_analysis
    as_text = Executable.as_text

    def optimized_program(self) -> Program:
        return self.program


def test_the_text_of_a_library_that_prints_none(product: LoadedExecutable) -> None:
    with pytest.raises(Unimplemented):
        product.executable.as_text()
    assert optimized_text(product.executable).startswith("HloModule")
    assert "f32[64,64]" in plugrt.compile(PROGRAM, backend="xla_cpu").as_text()


@pytest.mark.parametrize("read", [optimized_text, cost_analysis, optimized_graph])
def test_a_damaged_program_is_named(
    product: LoadedExecutable, read: Callable[[Executable], object]
) -> None:
    """Earlier, the caller got XLA's own error instead of one of plugrt's."""
    whole = product.executable.optimized_program()
    for end in range(1, len(whole.code), 97):
        program = Program(whole.code[:end], whole.format, "cut")
        try:
            read(Mute(program))
        except Unimplemented as error:
            if "'cut' is not an HLO module: " not in str(error) and "holds no HLO" not in str(
                error
            ):
                pytest.fail(str(error))
    deep = b""
    for _ in range(5000):
        deep = message(4, deep) + integer(2, 13)
    instruction = message(1, b"x") + message(2, b"parameter") + message(3, deep)
    nested = Program(message(3, message(2, instruction)), "hlo", "cut")
    with pytest.raises(Unimplemented, match="'cut' is not an HLO module: "):
        read(Mute(nested))


def test_the_estimate_is_what_the_library_counts(product: LoadedExecutable) -> None:
    stated, source = cost_analysis(product.executable)
    assert source == "the backend"
    # The library's own custom calls are opaque to the estimate; this program has none.
    counted, source = cost_analysis(Mute(product.executable.optimized_program()))
    assert source == ESTIMATE
    for figure in ("flops", "bytes accessed"):
        assert counted[figure] == pytest.approx(stated[figure], rel=0.01)
    assert counted["flops"] == pytest.approx(2 * 64**3, rel=0.01)


def test_a_format_that_nobody_reads() -> None:
    with pytest.raises(Unimplemented, match="in the format 'own'"):
        optimized_text(Mute(Program(b"\x00", "own")))


def test_a_library_without_topologies_says_so() -> None:
    with pytest.raises(Unimplemented, match="Topology not supported"):
        plugrt.topology("xla_cpu", "anything")


def test_the_example_recognises_the_digits() -> None:
    examples = Path(__file__).parents[3] / "examples"
    program = plugrt.compile(examples / "mlp.mlir", backend="xla_cpu")
    found = np.asarray(program(np.load(examples / "mlp_input.npy")))
    assert np.array_equal(found, np.load(examples / "mlp_labels.npy"))


def test_an_artifact_of_another_library_is_refused(product: LoadedExecutable) -> None:
    saved = product.executable.serialize()
    other = rewrite_header(saved, b'"platform": "cpu"', b'"platform": "tpu"')
    assert other != saved
    with pytest.raises(InvalidArgument, match="is for the platform 'tpu'; this backend is 'cpu'"):
        plugrt.get_backend("xla_cpu").deserialize_executable(other)
