"""The pages are correct: their links have targets, their shell commands exist."""

from __future__ import annotations

import re

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


def test_the_unreleased_changes_are_a_page() -> None:
    log = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    [unreleased] = re.findall(r"^## Unreleased\n(?:(?!## ).*\n)*", log, re.MULTILINE)
    assert len(unreleased.splitlines()) <= 40
