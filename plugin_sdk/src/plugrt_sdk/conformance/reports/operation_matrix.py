"""`operation_matrix`: each operation's verdict for each dtype, and the ranks that work."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from plugrt_sdk.conformance.checks.sizes import RANKS
from plugrt_sdk.conformance.operation_cases import (
    CASES,
    MATRIX,
    MLIR_NAMES,
    RIGHT_OF_TWO,
    case_id,
    shape_of,
)
from plugrt_sdk.conformance.verdict import Verdict

HOLDS, REFUSED, PARTLY, WRONG = "✓", "–", "(✓)", "✗"
LEGEND = (
    f"{HOLDS}: right; {REFUSED}: refused; {PARTLY}: some of its checks were refused; {WRONG}: "
    "wrong, also where a waiver names it; nothing: not tried. Ranks: the numbers of dimensions in "
    "which the operation is right on some dtype; the kit tries few of them for most operations."
)
_MARKS: Mapping[str, str] = {
    Verdict.PASS: HOLDS, Verdict.REFUSED: REFUSED, Verdict.NOT_RUN: "", Verdict.NO_HARDWARE: "",
}  # fmt: skip
_RANKS: Mapping[str, Sequence[int]] = {
    **{
        f"operations.{case_id(case)}.{dtype}": (len(shape_of(case, dtype)),)
        for case in CASES for dtype in case.dtypes
    },
    **RANKS,
}  # fmt: skip
"""The ranks of each check that tests several, by its id."""


class Line(NamedTuple):
    """A line of the matrix: an operation, a mark for each dtype, and the ranks that work."""

    operation: str
    marks: Sequence[str]
    ranks: str


def operation_matrix(report: Mapping[str, Any]) -> tuple[Sequence[str], Sequence[Line]]:
    """Returns the dtypes and the lines of the matrix; no line if no operation was tested."""
    cells: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    ranks: dict[str, set[int]] = defaultdict(set)
    for row in report["checks"]:
        chapter, *names, dtype = row["id"].split(".")
        mark = _MARKS.get(row["verdict"], WRONG)
        if not mark or chapter not in ("operations", "sizes") or dtype not in MLIR_NAMES:
            continue
        name = names[-1] if chapter == "sizes" else names[0]
        if RIGHT_OF_TWO in row["got"]:
            cells[name][dtype] |= {HOLDS, REFUSED}
            ranks[name].add(len(MATRIX))
            continue
        cells[name][dtype].add(mark)
        if mark == HOLDS:
            ranks[name].update(_RANKS.get(row["id"], ()))
    dtypes = [name for name in MLIR_NAMES if any(name in marks for marks in cells.values())]
    return dtypes, [
        Line(name, [_join(marks[dtype]) for dtype in dtypes], _spans(sorted(ranks[name])))
        for name, marks in sorted(cells.items())
    ]


def _join(marks: set[str]) -> str:
    if WRONG in marks:
        return WRONG
    return PARTLY if len(marks) > 1 else "".join(marks)


def _spans(numbers: Sequence[int]) -> str:
    """Formats numbers as ``1-3, 5``."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(f"{p[0]}-{p[-1]}" if len(p) > 1 else str(p[0]) for p in parts)
