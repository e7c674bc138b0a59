"""The matrix of a report: a mark for each operation and dtype, and the ranks that hold."""

from __future__ import annotations

from typing import Any

from plugrt.errors import Unimplemented
from plugrt.interface import CompileOptions, Program
from plugrt_sdk.conformance.mutants.faults import Faults, MutantClient
from plugrt_sdk.conformance.operation_cases import CASES, shape_of
from plugrt_sdk.conformance.reports.operation_matrix import operation_matrix
from plugrt_sdk.reading import read_module
from support import kit

VERDICTS = (
    ("operations.add.float32", "PASS"), ("operations.add.wrapped.int8", "FAIL"),
    ("operations.add.int8", "PASS"), ("operations.add.int16", "REFUSED"),
    ("operations.dot_general.float32", "PASS"), ("operations.dot_general.wider.float32", "REFUSED"),
    ("operations.abs.int8", "NOT-RUN"), ("operations.recv.compiled", "PASS"),
    ("sizes.ranks.dot_general.float32", "PASS"), ("buffers.put_get.dtypes.bool", "PASS"),
)  # fmt: skip


def rows(*verdicts: tuple[str, str], got: str = "") -> dict[str, Any]:
    return {"checks": [{"id": name, "verdict": verdict, "got": got} for name, verdict in verdicts]}


def test_a_cell_joins_the_verdicts_of_its_checks() -> None:
    dtypes, lines = operation_matrix(rows(*VERDICTS))
    assert dtypes == ["float32", "int8", "int16"]
    assert lines == [("add", ["✓", "✗", "–"], "2-3"), ("dot_general", ["(✓)", "", ""], "1-8")]
    assert operation_matrix(rows(("operations.abs.int8", "NO-HARDWARE")))[1] == []


def test_each_dtype_of_an_operation_has_another_rank() -> None:
    [add] = [case for case in CASES if case.name == "add"]
    ranks = [len(shape_of(add, dtype)) for dtype in add.dtypes]
    assert ranks[0] == 2
    assert set(ranks) == set(range(1, 9))


def test_an_operation_that_is_refused_in_a_rank_is_tried_in_two() -> None:
    def compile(self: MutantClient, program: Program, options: CompileOptions) -> Any:
        if "x1x7x1xi" in str(read_module(program)):
            raise Unimplemented("six dimensions")
        return MutantClient.compile(self, program, options)

    names = [
        f"operations.{case.name}.{dtype}" for case in CASES for dtype in case.dtypes
        if dtype.startswith("int") and len(shape_of(case, dtype)) == 6
    ]  # fmt: skip
    found = kit.judged(Faults(client={"compile": compile}).plugin_of, names[0])
    assert found[0].verdict == "REFUSED"
    _, [line] = operation_matrix(rows((names[0], "REFUSED"), got=found[0].got))
    assert line.marks == ["(✓)"]
    assert line.ranks == "2"
