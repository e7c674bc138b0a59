"""Paths, modules and functions in pages exist."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from support.markdown import ROOT, all_blocks, pages

ARCHITECTURE = ROOT / "docs/architecture.md"
MADE = {"dist/", "build/site", "mychip/__init__.py"}
"""Files that commands of a page make."""
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_TICKS = re.compile(r"`([^`\n]+)`")
_DEFINITION = re.compile(
    r"^\s*(?:async )?(?:def|class) (\w+)|^\s*(?:self\.)?(\w+)(?:: [^=\n]+)? = |^\s*(\w+): \w",
    re.MULTILINE,
)
_FOLDERS = ("runtime", "plugins", "plugin_sdk", "tests", "docs", "examples", "benchmarks", "tools")


@cache
def paths() -> frozenset[str]:
    """Returns the files and folders of the tree, each with all of its shorter forms."""
    found = [p for folder in _FOLDERS for p in (ROOT / folder).rglob("*")]
    found = [p for p in [*found, *ROOT.iterdir()] if "__pycache__" not in p.parts]
    parts = [p.relative_to(ROOT).parts for p in found]
    return frozenset("/".join(own[i:]) for own in parts for i in range(len(own)))


@cache
def defined() -> frozenset[str]:
    """Returns the names of functions, classes, attributes and modules of the distributions."""
    folders = [*ROOT.glob("*/src"), *ROOT.glob("plugins/*/src")]
    sources = [p for folder in folders for p in folder.rglob("*.py")]
    found = {p.stem for p in sources} | {p.parent.name for p in sources}
    for source in sources:
        for names in _DEFINITION.findall(source.read_text(encoding="utf-8")):
            found.update(names)
    return frozenset(found)


def in_ticks(page: Path) -> list[str]:
    return _TICKS.findall(_FENCE.sub("", page.read_text(encoding="utf-8")))


def is_path(name: str) -> bool:
    return bool(re.fullmatch(r"[\w.-][\w./-]*", name)) and (
        name.endswith((".py", "/")) or (name.partition("/")[0] in _FOLDERS and "/" in name)
    )


def in_template(name: str) -> str:
    """Returns the template of a file in ``mychip``, which `plugrt new` writes on pages."""
    if not name.startswith(("mychip/src", "mychip/tests")):
        return name
    return name.removeprefix("mychip/").replace("mychip", "my_chip")


@pytest.mark.parametrize("page", [str(p.relative_to(ROOT)) for p in pages()])
def test_paths_in_pages_are_there(page: str) -> None:
    named = {n for n in in_ticks(ROOT / page) if is_path(n)} - MADE
    missing = {n for n in named if in_template(n).rstrip("/") not in paths() and "NAME" not in n}
    assert not missing, f"{page} names {sorted(missing)}"


def test_names_in_the_architecture_are_defined() -> None:
    named = [n for n in in_ticks(ARCHITECTURE) if re.fullmatch(r"[\w.]*\w(\(.*\))?", n)]
    named = [n for n in named if not is_path(n)]
    words = {w for n in named for w in n.partition("(")[0].split(".") if w}
    assert len(words) > 30
    settings = {"CI", "make", "py", "plugrt"}
    missing = words - defined() - settings
    assert not missing, f"docs/architecture.md names {sorted(missing)}"


def test_modules_in_the_picture_of_a_call_are_there() -> None:
    [picture] = [b.text for b in all_blocks(ARCHITECTURE) if "the Aval of" in b.text]
    named = re.findall(r"\b(?:execution|tracing|stablehlo|transforms)/[\w/]+", picture)
    assert len(named) > 6
    missing = [name for name in named if not (ROOT / f"runtime/src/plugrt/{name}.py").exists()]
    assert not missing, f"docs/architecture.md draws {missing}"
