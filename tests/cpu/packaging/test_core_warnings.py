"""The parts in C of the runtime and of the SDK: compiled without a warning."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from pathlib import Path

import pytest

from support.apart import runs_apart
from support.clib import needs_cc

pytestmark = runs_apart("test-packages")
ROOT = Path(__file__).parents[3]


@needs_cc
@pytest.mark.parametrize("project", ["runtime", "plugin_sdk"])
def test_the_compiler_has_no_warning(project: str) -> None:
    sources = sorted((ROOT / project / "core").rglob("*.c"))
    macros = ["-DPy_LIMITED_API=0x030B0000", "-D_GNU_SOURCE"]
    include = ["-isystem", sysconfig.get_paths()["include"]]
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    done = subprocess.run(
        ["cc", *flags, *macros, *include, *sources],
        capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
