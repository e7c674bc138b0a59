"""Each plugin's CONFORMANCE.md has this tree's checks and the plugin's version."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from plugrt_sdk.conformance.manifest import manifest_hash
from support.markdown import ROOT

FOLDERS = sorted(p.parent for p in ROOT.glob("plugins/*/pyproject.toml"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_report_is_of_this_tree(folder: Path) -> None:
    report = (folder / "CONFORMANCE.md").read_text(encoding="utf-8")
    stated = dict(re.findall(r"^- (kit|plugin): (.*)$", report, re.M))
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    kit = tomllib.loads((ROOT / "plugin_sdk/pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert stated["kit"] == f"plugrt-sdk {kit['version']}, manifest {manifest_hash()}", (
        "the checks have changed: nox -s conformance"
    )
    assert stated["plugin"].startswith(f"{project['name']} {project['version']} "), (
        "the plugin's version has changed: nox -s conformance"
    )


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_report_names_no_folder_of_the_machine_that_made_it(folder: Path) -> None:
    report = (folder / "CONFORMANCE.md").read_text(encoding="utf-8")
    assert not re.search(r"(?<![\w.])/(work|home|root|tmp|Users)/", report)
    assert "CRASH" not in report
    assert "TIMEOUT" not in report
