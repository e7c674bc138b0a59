"""`tools/commit_subjects.py`, which the workflow runs, names subjects that break rules."""

from __future__ import annotations

import pytest

from support.markdown import ROOT, load_script

find_mistakes = load_script("tools/commit_subjects.py").find_mistakes


@pytest.mark.parametrize(
    ("subject", "mistake"),
    [
        ("Pass shardings to nested calls", None),
        ("Bring forks into lifetime", None),
        ("A" + "b" * 70 + " c", "73 characters"),
        ("x", "imperative"),
        ("add a check", "imperative"),
        ("Added a check", "imperative"),
        ("Adds a check", "imperative"),
        ("Adding a check", "imperative"),
        ("Add a check.", "imperative"),
    ],
)
def test_subjects(subject: str, mistake: str | None) -> None:
    found = find_mistakes([subject])
    assert [mistake in line for line in found] == [True] * (mistake is not None)


def test_the_workflow_checks_subjects() -> None:
    workflow = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    assert "python tools/commit_subjects.py origin/" in workflow
