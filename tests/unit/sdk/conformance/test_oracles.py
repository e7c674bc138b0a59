"""The kit's two oracles of operations agree: NumPy, and StableHLO's reference interpreter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

import plugrt
from plugrt.interface import Program
from plugrt_sdk.conformance import composites, operations
from plugrt_sdk.conformance.expect import Array, expect_close
from plugrt_sdk.conformance.operation_cases import (
    CASES,
    COMPLEX,
    Case,
    arguments_of,
    case_id,
    expected_of,
    program_of,
    ulps_of,
)
from plugrt_sdk.conformance.reference import Reference
from support.apart import runs_apart

SEEDS = (0, 1)
DIVIDES = """func.func public @main(%a: tensor<i32>, %b: tensor<i32>) -> tensor<i32> {
  %0 = stablehlo.divide %a, %b : tensor<i32>
  return %0 : tensor<i32>
}"""


@pytest.fixture(scope="module")
def reference() -> Iterator[Reference]:
    found = Reference()
    yield found
    found.close()


def agree(reference: Reference, text: str, arguments: Sequence[Array], wanted: Sequence[Array],
          ulps: int, of_largest: bool = False) -> None:  # fmt: skip
    found = reference.evaluate(text, arguments)
    assert found is not None
    assert len(found) == len(wanted)
    for result, expected in zip(found, wanted, strict=True):
        expect_close(result, expected, ulps, of_largest=of_largest)


@pytest.mark.parametrize("seed", SEEDS)
def test_elementwise_operations(reference: Reference, seed: int) -> None:
    for case in CASES:
        for dtype in case.dtypes:
            arguments = arguments_of(case, dtype, (5, 13), np.random.default_rng(seed))
            wanted = [expected_of(case, arguments)]
            agree(reference, program_of(case, dtype, (5, 13)), arguments, wanted,
                  ulps_of(case, dtype), dtype in COMPLEX)  # fmt: skip


@runs_apart("sdk")
@pytest.mark.parametrize("case", [case for case in CASES if case.ulps], ids=case_id)
def test_no_seed_accuses_the_cpu_plugin(case: Case) -> None:
    for dtype in case.dtypes:
        parts = [arguments_of(case, dtype, (5, 13), np.random.default_rng(i)) for i in range(500)]
        arguments = [np.concatenate(operand) for operand in zip(*parts, strict=True)]
        program = Program(program_of(case, dtype, arguments[0].shape).encode())
        found = np.split(np.asarray(plugrt.compile(program)(*arguments)), len(parts))
        wanted = np.split(expected_of(case, arguments), len(parts))
        for result, expected in zip(found, wanted, strict=True):
            expect_close(result, expected, ulps_of(case, dtype), of_largest=dtype in COMPLEX)


@runs_apart("sdk")
@pytest.mark.parametrize("seed", SEEDS)
def test_other_operations_and_composites(reference: Reference, seed: int) -> None:
    for sample in (*operations.SAMPLES, *composites.SAMPLES):
        for dtype in sample.dtypes if sample.interpreted else ():
            program, wanted = sample.make(dtype, seed)
            agree(reference, program.text(), program.arguments, wanted, sample.ulps,
                  sample.of_largest)  # fmt: skip


@runs_apart("sdk")
def test_the_interpreter_comes_back_where_a_program_ended_it(reference: Reference) -> None:
    seven, none = np.array(7, np.int32), np.array(0, np.int32)
    assert reference.evaluate(DIVIDES, [seven, none]) is None
    found = reference.evaluate(DIVIDES, [seven, np.array(2, np.int32)])
    assert found is not None
    assert int(found[0]) == 3
