"""docs/ecosystem.md states the calls that tests/vendors/test_ecosystem.py makes."""

from __future__ import annotations

from pathlib import Path

from support.ecosystem import CALLS, FAILS
from support.markdown import load_script

generate = load_script("docs/generate/ecosystem.py")
PAGE = Path(__file__).parents[3] / "docs/ecosystem.md"


def test_the_page_is_what_the_calls_say() -> None:
    def without_versions(text: str) -> list[list[str]]:
        rows = (line.split(" | ") for line in text.splitlines())
        return [[*row[:1], *row[2:]] for row in rows]

    page = PAGE.read_text()
    assert without_versions(generate.make_page(page)) == without_versions(page)


def test_each_reason_is_of_a_call() -> None:
    assert {*FAILS} <= {(library, words) for library, calls in CALLS.items() for words in calls}


def test_the_version_of_a_missing_library_stays() -> None:
    def missing(name: str) -> str:
        raise generate.metadata.PackageNotFoundError(name)

    page = generate.make_page("| einops | 9.8.7 | `rearrange` |  |\n", missing)
    assert "| einops | 9.8.7 |" in page
