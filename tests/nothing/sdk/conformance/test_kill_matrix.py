"""`nox -s kill_matrix` finds mutants, tries them and writes the matrix."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from support.apart import runs_apart
from support.clib import needs_cc

ROOT = Path(__file__).parents[4]
TOOL = ROOT / "tools/kill_matrix.py"


def matrix(folder: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name != "PLUGRT_PEER"} | more
    return subprocess.run(
        [sys.executable, str(TOOL), *words], cwd=folder, env=env, capture_output=True, text=True,
        timeout=200, check=False,
    )  # fmt: skip


@runs_apart("sdk")
@needs_cc
def test_the_matrix_of_a_few(tmp_path: Path) -> None:
    found = matrix(tmp_path, "buffers.read_only")
    assert found.returncode == 0, found.stderr
    assert "killed buffers.read_only: FAIL" in found.stdout
    assert "1 of 1 mutants are killed by their own check" in found.stdout
    [row] = json.loads((tmp_path / "build/kill-matrix.json").read_text())
    assert (row["mutant"], row["verdict"], row["killed"]) == ("buffers.read_only", "FAIL", True)
    assert "| `buffers.read_only` | FAIL |" in (tmp_path / "build/kill-matrix.md").read_text()


@runs_apart("sdk")
@needs_cc
def test_a_library_in_c(tmp_path: Path) -> None:
    found = matrix(tmp_path, "c.LoadedExecutable_Execute-_exit0")
    assert found.returncode == 0, found.stderr
    assert "killed c.LoadedExecutable_Execute-_exit0: CRASH\n" in found.stdout


def test_the_page_states_the_figures_of_the_record() -> None:
    runs = json.loads((ROOT / "docs/data/kill_matrix.json").read_text())
    page = " ".join((ROOT / "docs/conformance.md").read_text("utf-8").split())
    total = {
        key: sum(run[key] for run in runs)
        for key in ("count", "killed", "alone", "libraries", "noticed", "peer", "peer_ended")
    }
    assert total["killed"] == total["count"]
    assert len({name for run in runs for name in run["mutants"]}) == total["count"]
    for key in ("count", "alone", "libraries", "noticed", "peer"):
        assert f"{total[key]:,}" in page, key
