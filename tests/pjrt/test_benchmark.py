"""The benchmark of one library under four hosts: that it runs, and that its floor is C's."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from support.clib import needs_cc
from support.markdown import ROOT
from support.xla_cpu import needs_library

pytestmark = [needs_library, needs_cc]

CODE = """
import harness
harness.SAMPLE_SECONDS = 0.001
harness.ROUNDS = 3
import library
sides = library.Sides()
rows = [
    sides.call("2", lambda a, b: a + b, 2, wait=True),
    sides.parallel("4"),
    sides.put("put", 4),
    sides.get("get", 1 << 14),
]
for row in rows:
    assert list(row.seconds) == ["plugrt", "JAX", "pypjrt", "C"], row
    assert all(seconds > 0 for seconds in row.seconds.values()), row
    assert set(row.ratios) == {"JAX", "pypjrt", "C"}, row
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
