"""examples/plugin-reference is copied, installed as on its page, and runs its own tests."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support.apart import runs_apart
from support.installed import attempt, needs_uv, unreachable_is_skipped, uv_as_pip
from support.markdown import ROOT, blocks

pytestmark = [needs_uv, runs_apart("packages"), pytest.mark.long, pytest.mark.timeout(600)]
EXAMPLE = ROOT / "examples/plugin-reference"
CLEAN = {"JAX_PLATFORMS": "", "JAX_NUM_CPU_DEVICES": "", "COLUMNS": "160"}


def test_the_commands_of_its_page(wheels: list[Path], tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "build", ".*")
    shutil.copytree(EXAMPLE, copy, ignore=ignored)
    [commands] = blocks(EXAMPLE / "README.md", "sh")
    script = f'set -e\nmake-venv .venv\nPATH="$PWD/.venv/bin:$PATH"\n{commands.text}'
    env = CLEAN | uv_as_pip(copy, wheels[0].parent)
    done = attempt("bash", "-c", script, cwd=copy, env=env)
    unreachable_is_skipped(done)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "plugrt-reference 0.1.0" in done.stdout  # doctor's row
    assert "chosen: reference" in done.stdout
    assert "passed" in done.stdout
    assert "failed" not in done.stdout
