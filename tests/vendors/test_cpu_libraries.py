"""PJRT libraries for CPUs that other projects built: tests/pjrt's programs, and the kit.

tests/pjrt itself runs on xla-cpu-pjrt. docs/findings.md describes the faults that the kit finds.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from support import children
from support.distributions import run_cli
from support.markdown import ROOT

pytestmark = pytest.mark.timeout(300)
PROGRAMS = ["tests/pjrt/programs", "tests/pjrt/aot"]
NO_COST = "tests/pjrt/aot/test_hlo.py::test_the_estimate_is_what_the_library_counts"
"""Both libraries count no operations, which xla-cpu-pjrt does."""
FAILS = {
    "lammps-jax-pjrt-cpu": {"table_transfers.alias"},
    "fastatomstruct-xla-cpu": {
        "table_transfers.alias", "table_buffers.failed", "handles.assignment.overflow",
    },
}  # fmt: skip
"""Distribution to the checks up to level 1 that fail."""


@pytest.fixture(params=FAILS)
def library(request: pytest.FixtureRequest) -> tuple[str, str]:
    """A distribution and the path of its library."""
    return request.param, path_of(request.param)


def path_of(distribution: str) -> str:
    """Returns the path of a distribution's library; skips the test where it is not installed."""
    try:
        files = importlib.metadata.files(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"needs {distribution}")
    [path] = [file for file in files if file.name.endswith(".so")]
    return str(path.locate())


def test_programs(library: tuple[str, str]) -> None:
    env = {**os.environ, "PJRT_NAMES_AND_LIBRARY_PATHS": f"xla_cpu:{library[1]}", "XLA_FLAGS": ""}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *PROGRAMS]
    done = children.run([*command, f"--deselect={NO_COST}"], cwd=ROOT, env=env, timeout=280)
    assert done.returncode == 0, done.stdout[-4000:]
    assert " passed" in done.stdout.splitlines()[-1]


def test_the_kit_finds_what_is_known(library: tuple[str, str], tmp_path: Path) -> None:
    name, path = library
    file = tmp_path / "report.json"
    options = ("--level=1", "--jobs=2", f"--report={file}")
    run_cli("conform", path, *options, timeout=280)
    rows = json.loads(file.read_text())["checks"]
    wrong = {row["id"] for row in rows if row["verdict"] in ("FAIL", "CRASH", "TIMEOUT")}
    assert wrong == FAILS[name]
    assert sum(row["verdict"] == "PASS" for row in rows) > 200


def test_an_exception_past_an_unwinder_of_the_library_s_own_ends_the_process() -> None:
    """As SECURITY.md says of fastatomstruct-xla-cpu, whose C++ runtime sees no handler of ours."""
    path = path_of("fastatomstruct-xla-cpu")
    script = ROOT / "docs/findings/option_type.py"
    done = children.run([sys.executable, script, path, "cpu_device_count"], timeout=120)
    assert done.returncode == -signal.SIGABRT
    assert "libc++abi: terminating due to uncaught exception" in done.stderr
