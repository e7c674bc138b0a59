"""Level 2: StableHLO's operations, an id for each operation and dtype, against two oracles.

They are NumPy, which computes in float64 and rounds once, and StableHLO's reference interpreter,
for the operations that it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from plugrt_sdk.conformance.check import Chapter, Level
from plugrt_sdk.conformance.expect import Array, expect_close, expect_equal
from plugrt_sdk.conformance.operation_cases import (
    CASES,
    Case,
    arguments_of,
    case_id,
    expected_of,
    program_of,
)
from plugrt_sdk.conformance.operations import SAMPLES, Sample
from plugrt_sdk.conformance.subject import PluginSubject

CHAPTER = Chapter("operations", Level.COMPUTES, "StableHLO specification")

_SHAPE = (5, 13)
"""No dimension that the width of a vector unit divides."""
_DEMANDED = frozenset({("add", "float32"), ("multiply", "float32")})
"""What no backend may refuse."""
_WHY = "programs compute wrong numbers, and nothing says so"
_BOTH = "NumPy's and the reference interpreter's result"


def _try(
    subject: PluginSubject, text: str, arguments: Sequence[Array], wanted: Sequence[Array],
    ulps: int, of_largest: bool = False, interpreted: bool = True,
) -> None:  # fmt: skip
    """Runs a program, whose results must be NumPy's and, within twice the room, the interpreter's,
    whose own are not rounded once."""
    found = subject.run(text, *arguments)
    _compare(found, wanted, ulps, "NumPy's result", of_largest)
    reference = subject.reference.evaluate(text, arguments) if interpreted else None
    if reference is not None:
        _compare(found, reference, 2 * ulps, "the reference interpreter's result", of_largest)


def _compare(
    found: Sequence[Array], wanted: Sequence[Array], ulps: int, what: str, of_largest: bool
) -> None:
    expect_equal(len(found), len(wanted), "results:")
    for i, (result, oracle) in enumerate(zip(found, wanted, strict=True)):
        which = f"{what} {i}" if len(wanted) > 1 else what
        expect_close(result, oracle, ulps, which, of_largest=of_largest)


def _elementwise(subject: PluginSubject, case: Case, dtype: str) -> None:
    arguments = arguments_of(case, dtype, _SHAPE, subject.random(f"{case_id(case)}.{dtype}"))
    wanted = [expected_of(case, arguments)]
    _try(subject, program_of(case, dtype, _SHAPE), arguments, wanted,
         subject.ulps(dtype, case.ulps))  # fmt: skip


for _case in CASES:
    for _dtype in _case.dtypes:
        CHAPTER.add(
            f"{case_id(_case)}.{_dtype}",
            f"{case_id(_case)} on {_dtype} gives {_BOTH}"
            + (f" within {_case.ulps} ulp." if _case.ulps else " exactly."),
            partial(_elementwise, case=_case, dtype=_dtype),
            rests_on=f"StableHLO specification: {_case.name}",
            refusable=(_case.name, _dtype) not in _DEMANDED,
            why=_WHY,
        )


def _sample(subject: PluginSubject, sample: Sample, dtype: str) -> None:
    program, wanted = sample.make(dtype, subject.seed)
    ulps = subject.ulps(dtype, sample.ulps)
    _try(subject, program.text(), program.arguments, wanted, ulps, sample.of_largest,
         sample.interpreted)  # fmt: skip


def _title(sample: Sample, dtype: str) -> str:
    unit = "ulp of the largest" if sample.of_largest else "ulp"
    within = f" within {sample.ulps} {unit}" if sample.ulps else " exactly"
    oracle = _BOTH if sample.interpreted else "NumPy's result"
    what = sample.what[0].lower() + sample.what[1:] if sample.what[1:2].islower() else sample.what
    return f"{sample.name} on {dtype} gives {oracle}{within}: {what}."


for _sampled in SAMPLES:
    for _dtype in _sampled.dtypes:
        CHAPTER.add(
            f"{_sampled.id}.{_dtype}", _title(_sampled, _dtype),
            partial(_sample, sample=_sampled, dtype=_dtype),
            rests_on=f"StableHLO specification: {_sampled.name}", refusable=True, why=_WHY,
        )  # fmt: skip
