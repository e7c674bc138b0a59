"""examples/: each program prints the output that its page shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.markdown import ROOT, Block, all_blocks, says

PAGE = ROOT / "examples/README.md"
OWN = ("JAX_", "PLUGRT_PLUGINS", "PJRT_", "XLA_")
BLOCKS = all_blocks(PAGE)
APART = ("multiprocess.py", "ray_cluster.py", "servers_on_ray.py")
"""The examples that `nox -s processes` and `nox -s clusters` run."""
PAIRS = [(BLOCKS[i - 1], block) for i, block in enumerate(BLOCKS) if block.language == "text"]


@pytest.mark.parametrize(
    ("ran", "told"), PAIRS, ids=[ran.text.split("/")[1].split(".")[0] for ran, _ in PAIRS]
)
def test_it_prints_what_the_page_shows(ran: Block, told: Block, tmp_path: Path) -> None:
    env = {k: v for k, v in os.environ.items() if not k.startswith(OWN)}
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    (tmp_path / "examples").symlink_to(ROOT / "examples")  # their output files stay here
    done = subprocess.run(
        ["bash", "-ec", ran.text],
        cwd=tmp_path, env=env, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    for line in told.text.splitlines():
        assert says(line, done.stdout), f"{PAGE}:{told.line}: {line!r} not in:\n{done.stdout}"


def test_every_program_is_on_the_page() -> None:
    run = " ".join(ran.text for ran, _ in PAIRS)
    programs = {p.name for p in (ROOT / "examples").glob("*.py")} - {"make_mlp.py", *APART}
    assert len(programs) >= 4
    assert not [name for name in programs if f"examples/{name}" not in run]
