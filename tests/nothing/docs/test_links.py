"""The pages are correct: their links have targets, their shell commands exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.markdown import ROOT, blocks, pages

_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", [str(p.relative_to(ROOT)) for p in pages()])
def test_links_to_files_lead_somewhere(page: str) -> None:
    text = _FENCE.sub("", (ROOT / page).read_text(encoding="utf-8"))
    folder = (ROOT / page).parent
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if not target.startswith("http"):
            assert (folder / target).exists(), f"{page} links to {target}, which is not there"


def test_make_commands_in_the_readme_are_targets_that_ci_runs() -> None:
    makefile = (ROOT / "Makefile").read_text()
    ci = (ROOT / ".ci/run").read_text()
    commands = [
        found
        for block in blocks(ROOT / "README.md", "sh")
        for found in re.findall(r"^make (\w+)", block.text, re.MULTILINE)
    ]
    assert commands == ["demo", "test"]
    for target in commands:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
        assert re.search(rf"^tools/fresh\.sh .*\b{target}\b", ci, re.MULTILINE)  # runs make


def test_folders_of_the_pip_command_are_distributions() -> None:
    [command] = [
        line
        for block in blocks(ROOT / "README.md", "sh")
        for line in block.text.splitlines()
        if line.startswith("pip install")
    ]
    folders = [f.strip('"').split("[")[0] for f in re.findall(r"-e (\S+)", command)]
    projects = {p.parent for p in ROOT.glob("*/pyproject.toml")}
    projects |= {p.parent for p in ROOT.glob("plugins/*/pyproject.toml")}
    assert {ROOT / f for f in folders} == projects


def test_the_lock_file_holds_no_local_path() -> None:
    assert not re.search(r'"(/|file:)', (ROOT / "uv.lock").read_text())


def test_every_package_is_in_the_architecture() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    packages = [p for p in (ROOT / "runtime/src/plugrt").iterdir() if (p / "__init__.py").exists()]
    missing = [p.name for p in packages if f"{p.name}/" not in text]
    assert not missing, f"docs/architecture.md does not mention {missing}"
    assert len(packages) > 5
    assert Path(ROOT / "LICENSE").exists()
