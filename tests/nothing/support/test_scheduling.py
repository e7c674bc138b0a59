"""Tests that share a fixture of their module go to one worker, others to whichever is free."""

from __future__ import annotations

from support.scheduling import FixtureScheduling, shares_a_fixture


def test_what_shares_a_fixture() -> None:
    scope_of = FixtureScheduling._split_scope
    checkers = "tests/nothing/typing/test_type_checkers.py"
    names = [f"{checkers}::test_right_calls_are_taken[{n}]" for n in ("mypy", "pyright")]
    assert {scope_of(None, name) for name in names} == {checkers}  # type: ignore[arg-type]
    alone = "tests/nothing/test_protobuf.py::test_fields"
    assert scope_of(None, alone) == alone  # type: ignore[arg-type]
    areas = "tests/pjrt/test_suite_on_xla_cpu.py"
    assert not shares_a_fixture(areas), "its areas run beside each other"
