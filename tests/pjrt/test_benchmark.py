"""The benchmark of one library under five hosts: that it runs, and that its floor is C's."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from support.apart import runs_apart
from support.clib import needs_cc
from support.markdown import ROOT
from support.xla_cpu import needs_library

pytestmark = [needs_library, needs_cc, runs_apart("as_jax")]

CODE = """
import harness
harness.ROW_SECONDS = 0.01
harness.ROUNDS = 3
import library
with (sides := library.Sides()).python:
    rows = [
        sides.call(library.CALLS[2]),
        sides.parallel(f"pmap on {sides.floor.devices} devices, awaited"),
        sides.put("put", 4),
        sides.get("get", 1 << 14),
    ]
python = [["Python"], ["Python"], ["Python"], []]
for row, more in zip(rows, python, strict=True):
    assert list(row.seconds) == ["plugrt", *more, "JAX", "pypjrt", "C"], row
    assert all(seconds > 0 for seconds in row.seconds.values()), row
    assert list(row.ratios) == [*more, "JAX", "pypjrt", "C"], row
harness.report_sides("few", rows, None)
library.print_layers(sides.floor, sides.addition(), library.FOUR)
"""


def test_benchmark_runs() -> None:
    pytest.importorskip("pypjrt")
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        env={**os.environ, "PYTHONPATH": str(ROOT / "benchmarks")},
        capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "the library: Execute and Buffer_Destroy, called from C" in done.stdout
