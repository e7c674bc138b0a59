"""Files that only other services read: their names exist, and their versions are the lock's."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from support.markdown import ROOT

yaml = pytest.importorskip("yaml", reason="needs PyYAML, which the group `docs` brings")
GITHUB = ROOT / ".github"
FILES = sorted([*GITHUB.rglob("*.yml"), ROOT / ".pre-commit-config.yaml"])


def _load(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return loaded


def _locked(name: str) -> str:
    lock = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))
    [version] = [p["version"] for p in lock["package"] if p["name"] == name]
    return str(version)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_each_file_is_yaml(path: Path) -> None:
    assert _load(path)


def test_pre_commit_runs_the_ruff_of_the_lock() -> None:
    [repository] = _load(ROOT / ".pre-commit-config.yaml")["repos"]
    asked = [d for hook in repository["hooks"] for d in hook.get("additional_dependencies", ())]
    assert asked == [f"ruff=={_locked('ruff')}"] * 2


def test_the_public_pipeline_is_ours() -> None:
    workflow = _load(GITHUB / "workflows/ci.yml")
    steps = workflow["jobs"]["ci"]["steps"]
    assert [s["run"] for s in steps if "run" in s] == ["bash .ci/run"]
    assert (ROOT / ".ci/run").exists()
    versions = workflow["jobs"]["ci"]["strategy"]["matrix"]["python"]
    project = tomllib.loads((ROOT / "runtime/pyproject.toml").read_text())["project"]
    named = [c.rpartition(" ")[2] for c in project["classifiers"] if re.search(r":: 3\.\d+$", c)]
    assert versions == named, "the classifiers name other Pythons than CI runs"


def test_issue_forms_ask_for_what_doctor_says() -> None:
    for name in ("bug", "plugin"):
        fields = _load(GITHUB / f"ISSUE_TEMPLATE/{name}.yml")["body"]
        assert any("plugrt doctor" in f["attributes"]["label"] for f in fields)
