"""The page of the conformance kit's checks agrees with the code."""

from __future__ import annotations

import re

import pytest

from support import kit
from support.markdown import load_script

generate = load_script("docs/generate/checks.py")


def test_the_page_has_every_check_once() -> None:
    page = generate.page()
    assert re.findall(r"^\| `([^`]+\.[^`]+)` \|", page, re.M) == list(kit.checks())
    widths = {len(re.findall(r"(?<!\\)\|", line)) for line in page.splitlines() if line[:1] == "|"}
    assert widths == {4, 6}, "no text adds a column to its table"


def test_texts_are_shown_as_they_are() -> None:
    assert generate.cell("a|b <c> ``d|*`` *e*") == "a\\|b \\<c\\> `d\\|*` \\*e\\*"
    with pytest.raises(ValueError, match="an odd number of backquotes"):
        generate.cell("a ` b")
