"""The C extensions of the runtime and of the SDK compile, as under pip, without a warning."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.apart import runs_apart
from support.clib import needs_cc

pytestmark = runs_apart("packages")
ROOT = Path(__file__).parents[3]


@needs_cc
@pytest.mark.parametrize("project", ["runtime", "plugin_sdk"])
def test_the_build_has_no_warning(project: str, tmp_path: Path) -> None:
    """Link-time optimisation shows the compiler where each block is allocated."""
    source = tmp_path / project
    shutil.copytree(ROOT / project, source, ignore=shutil.ignore_patterns("*.so", "build"))
    done = subprocess.run(
        [sys.executable, "setup.py", "build_ext", "--build-lib", "out", "--build-temp", "objects"],
        cwd=source, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"},
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-3000:]
    assert [*source.glob("out/**/*.so")], said[-3000:]
    assert "warning:" not in said, said[said.index("warning:") - 200 :][:3000]
