"""`plugrt_sdk.conformance.patience`: the limits of time after a check that hung."""

from __future__ import annotations

import pytest

from plugrt_sdk.conformance.patience import Patience
from plugrt_sdk.conformance.verdict import Result, Verdict
from support import kit

BEFORE, AT, AFTER = "buffers.put_get.scalar", "programs.add", "buffers.put_get.one"


@pytest.mark.parametrize(
    ("slowest", "limits"),
    [(0.1, [3.0, 1.5, 1.0, 1.0]), (1.5, [7.5, 3.75, 2.5, 2.25]), (50.0, [10.0] * 4)],
)
def test_a_check_has_little_time_after_one_that_hung(slowest: float, limits: list[float]) -> None:
    known = Patience(30.0)
    known.note(kit.find(AT), Result(Verdict.PASS, seconds=slowest))
    assert known.limit() == 30.0
    late = Result(Verdict.TIMEOUT)
    assert known.judge_late(BEFORE, late, 30.0) is late
    assert known.find_why_given_up(kit.find(AFTER)) == "", "others of its chapter may hold"
    found = []
    for chapter in "abcd":
        found.append(known.limit())
        assert known.judge_late(f"{chapter}.check", late, found[-1]).verdict == Verdict.NOT_RUN
    assert found == limits


def test_a_check_that_had_the_whole_limit_is_late_whatever_hung_before() -> None:
    late = Result(Verdict.TIMEOUT)
    small = Patience(2.0)
    assert [small.judge_late(name, late, 2.0).verdict for name in (BEFORE, AT)] == [
        Verdict.TIMEOUT, Verdict.TIMEOUT
    ]  # fmt: skip
    assert small.find_why_given_up(kit.find(AT))
