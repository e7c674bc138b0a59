"""Level 2: StableHLO's operations against NumPy, an id for each operation and dtype."""

from __future__ import annotations

from functools import partial

from plugrt_sdk.conformance.check import Chapter, Level
from plugrt_sdk.conformance.expect import expect_close
from plugrt_sdk.conformance.operation_cases import (
    CASES,
    Case,
    arguments_of,
    case_id,
    expected_of,
    program_of,
)
from plugrt_sdk.conformance.subject import PluginSubject

CHAPTER = Chapter("operations", Level.COMPUTES, "StableHLO specification")

_SHAPE = (5, 13)
"""No dimension that the width of a vector unit divides."""
_DEMANDED = frozenset({("add", "float32"), ("multiply", "float32")})
"""What no backend may refuse."""


def _elementwise(subject: PluginSubject, case: Case, dtype: str) -> None:
    arguments = arguments_of(case, dtype, _SHAPE, subject.random(f"{case_id(case)}.{dtype}"))
    [found] = subject.run(program_of(case, dtype, _SHAPE), *arguments)
    expect_close(found, expected_of(case, arguments), subject.ulps(dtype, case.ulps))


for _case in CASES:
    for _dtype in _case.dtypes:
        CHAPTER.add(
            f"{case_id(_case)}.{_dtype}",
            f"{case_id(_case)} on {_dtype} gives NumPy's result"
            + (f" within {_case.ulps} ulp." if _case.ulps else " exactly."),
            partial(_elementwise, case=_case, dtype=_dtype),
            rests_on=f"StableHLO specification: {_case.name}",
            refusable=(_case.name, _dtype) not in _DEMANDED,
            why="programs compute wrong numbers, and nothing says so",
        )
