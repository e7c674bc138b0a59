"""PJRT libraries for CPUs that other projects built: tests/pjrt's programs, and the kit.

tests/pjrt itself runs on xla-cpu-pjrt. docs/findings.md describes the faults that the kit finds.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

from support import children
from support.markdown import ROOT

PROGRAMS = ["tests/pjrt/programs", "tests/pjrt/aot"]
LEAST_PROGRAMS = 55
"""The smallest number of tests."""
NO_COST = "tests/pjrt/aot/test_hlo.py::test_the_estimate_is_what_the_library_counts"
"""Of the three xla-cpu-pjrt alone counts operations."""
KIT = ("--quick", "--jobs=2")
"""The options of `plugrt conform` in the comparison with `FAILS`."""
OF_ALL = (
    "programs.refused.arguments.dtype", "programs.refused.arguments.rank",
    "table_programs.bounded.cut", "table_programs.empty",
)  # fmt: skip
FAILS = {
    "xla-cpu-pjrt": {
        *OF_ALL, "handles.assignment.overflow", "table_buffers.read.layout",
        "table_programs.deleted",
    },
    "lammps-jax-pjrt-cpu": {*OF_ALL, "topologies.compile.refused"},
    "fastatomstruct-xla-cpu": {
        *OF_ALL, "handles.assignment.overflow", "table_buffers.failed", "table_programs.deleted",
    },
}  # fmt: skip
"""Distribution to the checks of a quick run that fail."""


def run_programs(distribution: str, library: str) -> None:
    """Runs the programs of tests/pjrt on a library; each must pass, and none is skipped."""
    env = {**os.environ, "PJRT_NAMES_AND_LIBRARY_PATHS": f"xla_cpu:{library}", "XLA_FLAGS": ""}
    env.pop("PLUGRT_TEST_TARGET", None)  # with the slow tests
    without = [] if distribution == "xla-cpu-pjrt" else [f"--deselect={NO_COST}"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *PROGRAMS, *without]
    done = children.run(command, cwd=ROOT, env=env, timeout=280)
    assert done.returncode == 0, done.stdout[-4000:]
    last = done.stdout.splitlines()[-1]
    passed = re.match(r"(\d+) passed", last)
    assert passed, last
    assert int(passed[1]) >= LEAST_PROGRAMS - len(without), last
    assert "skipped" not in last, last


def compare_with_kit(distribution: str, report: Path) -> None:
    """Compares a report of the kit with the library's known faults."""
    rows = json.loads(report.read_text())["checks"]
    wrong = {row["id"] for row in rows if row["verdict"] in ("FAIL", "CRASH", "TIMEOUT")}
    assert wrong == FAILS[distribution]
    assert sum(row["verdict"] == "PASS" for row in rows) > 550
