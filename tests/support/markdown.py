"""Reading the code blocks of Markdown pages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, its text, and the line of the page that it starts on."""

    language: str
    text: str
    line: int


def pages() -> list[Path]:
    """Returns the Markdown pages that people read."""
    patterns = ("*.md", "docs/*.md", "plugins/*/README.md", "examples/**/README.md", "*/README.md")
    return sorted({page for pattern in patterns for page in ROOT.glob(pattern)})


def blocks(page: Path, language: str) -> list[Block]:
    """Returns the blocks of a page in one language, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(found[1], found[2], text[: found.start()].count("\n") + 2)
        for found in _BLOCK.finditer(text)
        if found[1] == language
    ]


def expected_output(code: str) -> list[str]:
    """Returns what ``print(...)  # [1. 2.]`` lines say that they print."""
    return re.findall(r"^\s*print\(.*\)\s+# (\[.*)$", code, re.MULTILINE)
