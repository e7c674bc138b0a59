"""docs/behaviour.md agrees with the marked tests and their recorded results."""

from __future__ import annotations

from typing import Any

import pytest

from support.markdown import load_script

generate = load_script("docs/generate/behaviour.py")
RECORD = "docs/generate/behaviour.py record FILE"


@pytest.fixture(scope="module")
def tests() -> list[Any]:
    """Returns the marked tests; as a constant, each worker would parse them while it collects."""
    found: list[Any] = generate.collect()
    return found


def test_the_page_is_in_step_with_the_tests(tests: list[Any]) -> None:
    assert generate.PAGE.read_text(encoding="utf-8") == generate.page(tests), RECORD


def test_every_marked_test_is_recorded_and_no_other(tests: list[Any]) -> None:
    assert sorted(generate.read_results()) == sorted(test.test for test in tests), RECORD


def test_each_passed_somewhere_and_ran_on_each_platform() -> None:
    for test, outcomes in generate.read_results().items():
        assert outcomes.keys() == generate.PLATFORMS.keys(), test
        assert "passed" in outcomes.values(), test


def test_rows_and_sentences(tests: list[Any]) -> None:
    rows = generate.read_rows()
    assert [test.test for test in tests if test.row not in rows] == []
    unlike = [test.test for test in tests if not test.holds or test.holds.endswith(".")]
    assert unlike == []
