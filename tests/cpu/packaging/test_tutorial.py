"""docs/tutorial-plugin.md, followed exactly in an empty folder.

plugrt is installed from its wheels, as from an index. ``pip`` is uv's, which uses the cache of
`make`; the rest is as on the page.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from support.apart import runs_apart
from support.installed import attempt, needs_uv, unreachable_is_skipped, uv_as_pip
from support.markdown import ROOT, Block, all_blocks, says

pytestmark = [needs_uv, runs_apart("packages"), pytest.mark.long, pytest.mark.timeout(600)]
PAGE = ROOT / "docs/tutorial-plugin.md"
CLEAN = {"JAX_PLATFORMS": "", "JAX_NUM_CPU_DEVICES": "", "COLUMNS": "160"}


def _write(block: Block, folder: Path) -> None:
    assert (folder / block.title).parent.is_dir(), f"the page never makes the folder {block.title}"
    (folder / block.title).write_text(block.text)


def _run(block: Block, folder: Path, wheels: Path) -> str:
    """Runs the commands of a block in one shell; returns their output."""
    script = f"set -e\n{block.text}".replace("\npython3 -m venv .venv\n", "\nmake-venv .venv\n")
    done = attempt("bash", "-c", script, cwd=folder, env=CLEAN | uv_as_pip(folder, wheels))
    unreachable_is_skipped(done)
    assert done.returncode == 0, f"{PAGE}:{block.line} fails:\n{done.stdout}{done.stderr}"
    return done.stdout


def test_the_tutorial_runs_from_an_empty_folder(wheels: list[Path], tmp_path: Path) -> None:
    printed, compared = "", 0
    for block in all_blocks(PAGE):
        made = tmp_path / "abacus"
        if block.title:
            _write(block, made)
        elif block.language == "sh":
            printed = _run(block, made if made.exists() else tmp_path, wheels[0].parent)
        else:
            assert block.language == "text", f"{PAGE}:{block.line}: a block that nothing tests"
            for line in block.text.splitlines():
                assert says(line, printed), f"{PAGE}:{block.line}: {line!r} not in:\n{printed}"
                compared += 1
    assert compared >= 7
    assert "passed" in printed  # the last commands are the package's own tests
