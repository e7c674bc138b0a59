"""Sentences on missing features are in `docs/data/absences.toml`, each with a test."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any

import pytest

from support.markdown import ROOT, pages

ROWS: list[dict[str, Any]] = tomllib.loads((ROOT / "docs/data/absences.toml").read_text())[
    "absences"
]
CLAIM = re.compile(
    r"\bnot(?: \w+){0,4} yet\b|\bnot (?:supported|implemented)\b|\bno \w+(?: \w+){0,4} yet\b"
    r"|\bplugrt (?:has no|does not(?! know| refuse))\b|\b[\d.]+ was not tried\b|\b[Nn]o wheel\b"
)
_GENERATED = re.compile(r"<!-- (?:Generated|Written) by ")
_CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_SECTION = re.compile(r"^## (?:What is )?not there\b.*\n((?:(?!## ).*\n?)*)", re.M | re.I)


def hand_written() -> dict[str, str]:
    """Returns the pages for users that no script writes, without their code."""
    texts = {str(p.relative_to(ROOT)): p.read_text(encoding="utf-8") for p in pages()}
    for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"):
        del texts[name]
    return {n: _CODE.sub("", text) for n, text in texts.items() if not _GENERATED.search(text)}


def find_mistakes(rows: list[dict[str, Any]], texts: Mapping[str, str]) -> list[str]:
    """Returns rows whose sentence is in no page, and claims of pages without a row."""
    found = []
    for name, text in texts.items():
        known = [row["sentence"] for row in rows if name in row["pages"]]
        flat = " ".join(text.split())
        found += [f"{name}: not in the page: {s}" for s in known if s not in flat]
        for sentence in known:
            flat = flat.replace(sentence, "")
        found += [f"{name}: has no row: {m[0]}" for m in CLAIM.finditer(flat)]
        for section in _SECTION.findall(text):
            for part in re.split(r"\n\s*\n|^- ", section, flags=re.MULTILINE):
                words = " ".join(part.split())
                if words and not any(sentence in words for sentence in known):
                    found.append(f"{name}: has no row: {words}")
    return found


def test_each_absence_has_a_row_and_each_row_a_sentence() -> None:
    texts = hand_written()
    assert find_mistakes(ROWS, texts) == []
    assert {page for row in ROWS for page in row["pages"]} <= set(texts)


@pytest.mark.parametrize("test", sorted({row["test"] for row in ROWS}))
def test_the_test_of_a_row_is_there(test: str) -> None:
    file, _, name = test.partition("::")
    assert f"\ndef {name}(" in (ROOT / file).read_text(encoding="utf-8")


def test_nothing_has_been_released() -> None:
    log = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "## Unreleased" in log
    assert not re.search(r"^## \[?\d", log, re.MULTILINE)


def test_the_number_of_checks_that_peers_are_compared_with_is_right() -> None:
    found = re.search(r"over ([\d,]+) checks", (ROOT / "docs/design.md").read_text("utf-8"))
    assert found
    stated = int(found[1].replace(",", ""))
    checks = (ROOT / "docs/data/check_ids.txt").read_text("utf-8").split("\n")
    assert stated <= len([line for line in checks if line]) < stated + 200
