"""Level 2: StableHLO's operations, an id for each operation and dtype, against two oracles.

They are NumPy, which computes in float64 and rounds once, and StableHLO's reference interpreter,
for the operations that it has.
"""

from __future__ import annotations

from functools import partial

from plugrt_sdk.conformance.check import Chapter, Level
from plugrt_sdk.conformance.operation_cases import (
    CASES,
    Case,
    arguments_of,
    case_id,
    expected_of,
    program_of,
)
from plugrt_sdk.conformance.operations import SAMPLES
from plugrt_sdk.conformance.oracles import BOTH, describe_result, expect_as_oracles, try_sample
from plugrt_sdk.conformance.subject import PluginSubject

CHAPTER = Chapter("operations", Level.COMPUTES, "StableHLO specification")

_SHAPE = (5, 13)
"""No dimension that the width of a vector unit divides."""
_DEMANDED = frozenset({("add", "float32"), ("multiply", "float32")})
"""What no backend may refuse."""
_WHY = "programs compute wrong numbers, and nothing says so"


def _elementwise(subject: PluginSubject, case: Case, dtype: str) -> None:
    arguments = arguments_of(case, dtype, _SHAPE, subject.random(f"{case_id(case)}.{dtype}"))
    wanted = [expected_of(case, arguments)]
    expect_as_oracles(
        subject, program_of(case, dtype, _SHAPE), arguments, wanted, subject.ulps(dtype, case.ulps)
    )


for _case in CASES:
    for _dtype in _case.dtypes:
        CHAPTER.add(
            f"{case_id(_case)}.{_dtype}",
            f"{case_id(_case)} on {_dtype} gives {BOTH}"
            + (f" within {_case.ulps} ulp." if _case.ulps else " exactly."),
            partial(_elementwise, case=_case, dtype=_dtype),
            rests_on=f"StableHLO specification: {_case.name}",
            refusable=(_case.name, _dtype) not in _DEMANDED,
            why=_WHY,
        )


for _sampled in SAMPLES:
    for _dtype in _sampled.dtypes:
        CHAPTER.add(
            f"{_sampled.id}.{_dtype}",
            f"{_sampled.name} on {_dtype} gives {describe_result(_sampled)}.",
            partial(try_sample, sample=_sampled, dtype=_dtype),
            rests_on=f"StableHLO specification: {_sampled.name}", refusable=True, why=_WHY,
        )  # fmt: skip
