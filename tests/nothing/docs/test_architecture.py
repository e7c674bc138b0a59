"""The tables of `docs/architecture.md` have the folders of the tree, and no others."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from support.markdown import ROOT

SOURCES = {".c", ".cc", ".h", ".json", ".md", ".mlir", ".py", ".svg", ".toml"}
_TABLE = re.compile(
    r"^\| (?:folder|package) \(`([\w.]+(?:/[\w]+)*)[/.]…`\) \|.*\n\|.*\n((?:\|.*\n)+)", re.M
)


def in_tables(page: str) -> set[str]:
    """Returns the folders in the first column of the page's tables, as paths of the repository."""
    found = set()
    for head, rows in _TABLE.findall(page):
        start = "runtime/src/plugrt" if head == "plugrt" else head
        for row in rows.splitlines():
            first, _, steps = row.split("|")[1].partition("(")
            for outer in re.findall(r"`([\w/]+)/`", first):
                found |= {f"{start}/{outer}"}
                found |= {f"{start}/{outer}/{n}" for n in re.findall(r"`(\w+)/`", steps)}
    return found


def packages(root: Path) -> Iterable[Path]:
    """Returns the packages below the ``src`` folders, but for templates."""
    for src in (root / "runtime/src", *root.glob("plugins/*/src"), root / "plugin_sdk/src"):
        found = [p.parent for p in src.rglob("__init__.py")]
        yield from (p for p in found if "templates" not in p.parts)


def other_folders(root: Path) -> Iterable[Path]:
    """Returns the folders of the C sources, the tests, the tools and the documentation."""
    yield from (root / "plugin_sdk/core", root / "plugin_sdk/runner")
    for name in ("runtime/core", "plugin_sdk/core", "tests", "tools", "docs"):
        for folder in (p for p in (root / name).iterdir() if p.is_dir()):
            if any(p.suffix in SOURCES for p in folder.rglob("*")):
                yield folder


def find_mistakes(root: Path, page: str) -> list[str]:
    """Returns the folders that the page lacks, and those that it has but the tree lacks."""
    stated = in_tables(page)
    there = {str(p.relative_to(root)) for p in (*packages(root), *other_folders(root))}
    there -= {"runtime/src/plugrt"}  # has the first table for itself
    found = [f"not in the page: {name}" for name in sorted(there - stated)]
    return found + [f"not there: {name}" for name in sorted(stated) if not (root / name).is_dir()]


def test_the_architecture_has_the_folders_of_the_tree() -> None:
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    assert len(in_tables(page)) > 80
    assert find_mistakes(ROOT, page) == []


@pytest.mark.parametrize(
    "new",
    ["runtime/src/plugrt/lax/new", "plugins/cpu/src/new", "plugin_sdk/src/plugrt_sdk/export/new",
     "runtime/core/new", "tests/new", "tools/new", "docs/new"],
)  # fmt: skip
def test_a_new_folder_has_to_be_in_the_page(tmp_path: Path, new: str) -> None:
    for name in ("runtime/core", "plugin_sdk/core", "tests", "tools", "docs", new):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
    (tmp_path / new / "__init__.py").touch()
    page = "| folder (`plugin_sdk/…`) | contents |\n| --- | --- |\n| `core/`, `runner/` | C |\n"
    assert find_mistakes(tmp_path, page) == [
        f"not in the page: {new}",
        "not there: plugin_sdk/runner",
    ]
    row = f"| folder (`{new.split('/', 1)[0]}/…`) |\n| --- |\n| `{new.split('/', 1)[1]}/` |\n"
    assert find_mistakes(tmp_path, f"{page}\n{row}") == ["not there: plugin_sdk/runner"]
