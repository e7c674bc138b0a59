"""One version for all distributions, from the root ``pyproject.toml``, and their copies."""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

import plugrt
from support.markdown import ROOT, load_script


def _project(path: Path) -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    return project


TOOL = load_script("tools/version.py")
VERSION: str = _project(ROOT / "pyproject.toml")["version"]
PROJECTS: list[Path] = TOOL.projects()
NAMES = {_project(p)["name"] for p in PROJECTS}
each = pytest.mark.parametrize("path", PROJECTS, ids=lambda p: p.parent.name)


def _requirements_of_ours(project: dict[str, Any]) -> list[str]:
    """Returns the requirements that are other distributions of ours."""
    extras = project.get("optional-dependencies", {}).values()
    everything = [*project["dependencies"], *(r for extra in extras for r in extra)]
    own = project["name"]
    ours = [r for r in everything if r.split(">=")[0].split("[")[0] in NAMES - {own}]
    assert not [r for r in everything if r.startswith("plugrt") and not r.startswith(own)
                and r not in ours], "a requirement that this test does not understand"  # fmt: skip
    return ours


def test_the_attribute_is_the_version() -> None:
    assert plugrt.__version__ == VERSION


def test_there_are_seven_distributions() -> None:
    parts = {
        "plugrt-cpu",
        "plugrt-cuda",
        "plugrt-numpy",
        "plugrt-remote",
        "plugrt-tpu",
        "plugrt-sdk",
    }
    assert {"plugrt", *parts} == NAMES


@each
def test_each_distribution_has_the_version(path: Path) -> None:
    assert _project(path)["version"] == VERSION


@each
def test_distributions_bound_each_other(path: Path) -> None:
    ours = _requirements_of_ours(_project(path))
    assert ours, f"{path} requires none of the others"
    assert all(r.endswith(TOOL.bounds(VERSION)) for r in ours), ours


@each
def test_package_pages_have_what_people_look_for(path: Path) -> None:
    project = _project(path)
    assert {"Source", "Documentation", "Changelog", "Issues"} <= set(project["urls"])
    assert project["urls"] == _project(PROJECTS[0])["urls"]
    assert project["authors"]
    assert project["keywords"]
    assert "Typing :: Typed" in project["classifiers"]
    assert not [c for c in project["classifiers"] if c.startswith("License")]  # `license` states it


@each
def test_the_pages_of_packages_have_no_links_that_end_there(path: Path) -> None:
    text = (path.parent / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]*)\)", re.sub(r"(?ms)^```.*?^```$", "", text))
    relative = [link for link in links if not link.startswith("http")]
    assert not relative, f"an index shows {path.parent.name}'s README alone: {relative}"
    assert len(text.splitlines()) > 20, "a page with hardly anything on it"


def test_the_lock_has_the_version() -> None:
    lock = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))
    locked = {p["name"]: p["version"] for p in lock["package"] if p["name"] in NAMES}
    assert locked == dict.fromkeys(NAMES, VERSION), "run `nox -s version`"


@pytest.mark.parametrize(
    ("version", "allowed"),
    [
        ("0.1.0", ">=0.1.0,<0.2"),
        ("0.9.3", ">=0.9.3,<0.10"),
        ("1.0.0rc1", ">=1.0.0rc1,<2"),
        ("2.5.1", ">=2.5.1,<3"),
    ],
)
def test_bounds_end_before_the_next_version_that_may_break(version: str, allowed: str) -> None:
    assert TOOL.bounds(version) == allowed


@pytest.mark.parametrize("text", ["", "1", "0.2", "v0.2.0", "0.2.0.0", "newest"])
def test_wrong_versions_are_refused(text: str) -> None:
    with pytest.raises(SystemExit, match="is no version"):
        TOOL.bounds(text)


def test_a_new_version_reaches_every_place(tmp_path: Path) -> None:
    for path in [ROOT / "pyproject.toml", ROOT / TOOL.INIT, *PROJECTS]:
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    TOOL.write("7.8.9", tmp_path)
    assert '__version__ = "7.8.9"' in (tmp_path / TOOL.INIT).read_text()
    for path in TOOL.projects(tmp_path):
        project = _project(path)
        assert project["version"] == "7.8.9"
        ours = _requirements_of_ours(project)
        assert all(r.endswith(">=7.8.9,<8") for r in ours), ours
        assert VERSION not in path.read_text(), "the old version is left somewhere"
    TOOL.write(VERSION, tmp_path)  # writing the old version restores every file
    for path in PROJECTS:
        assert (tmp_path / path.relative_to(ROOT)).read_text() == path.read_text()
