"""Reading the code blocks of Markdown pages."""

from __future__ import annotations

import importlib.util
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r'^```(\w*)(?: title="([^"\n]*)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, text, the line of the page that it starts on, and title."""

    language: str
    text: str
    line: int
    title: str = ""


def pages() -> list[Path]:
    """Returns the Markdown pages that people read."""
    patterns = ("*.md", "docs/*.md", "plugins/*/README.md", "examples/**/README.md", "*/README.md")
    return sorted({page for pattern in patterns for page in ROOT.glob(pattern)})


def blocks(page: Path, language: str) -> list[Block]:
    """Returns the blocks of a page in one language, in order."""
    return [block for block in all_blocks(page) if block.language == language]


def all_blocks(page: Path) -> list[Block]:
    """Returns the blocks of a page, in order; the ``title="…"`` of a block is its file name."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(found[1], found[3], text[: found.start()].count("\n") + 2, found[2] or "")
        for found in _BLOCK.finditer(text)
    ]


def expected_output(code: str) -> list[str]:
    """Returns the outputs that ``print(...)  # [1. 2.]`` lines state."""
    return re.findall(r"^\s*print\(.*\)\s+# (\[.*)$", code, re.MULTILINE)


def says(line: str, printed: str) -> bool:
    """Whether the output has a line of a page: runs of spaces count as one, … as any ending."""
    begin = " ".join(line.partition("…")[0].split())
    whole = "…" not in line
    lines = [" ".join(found.split()) for found in printed.splitlines()]
    return any(found == begin if whole else found.startswith(begin) for found in lines)


def load_script(path: str) -> ModuleType:
    """Returns a script of the repository (a tool, a generator) as a module, without running it."""
    name = path.removesuffix(".py").replace("/", "_")
    spec = importlib.util.spec_from_file_location(name, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look up their module there
    spec.loader.exec_module(module)
    return module
