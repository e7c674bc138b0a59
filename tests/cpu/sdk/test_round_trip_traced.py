"""The suite test_round_trip.py under ``plugrt trace --check`` breaks no rule of the C API."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.apart import runs_apart

pytestmark = [runs_apart("sdk"), pytest.mark.long]


def test_a_clean_run_of_the_suite_reports_no_leak(tmp_path: Path) -> None:
    """The NumPy backend and the cpu plugin run in one process, as capsules and as libraries."""
    target = tmp_path / "trace.json"
    suite = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider"]
    ended = subprocess.run(
        [sys.executable, "-m", "plugrt", "trace", "--check", "--summary", "--format", "json",
         "-o", str(target), "--", *suite, str(Path(__file__).with_name("test_round_trip.py"))],
        capture_output=True, text=True, timeout=600, check=False,
        env={n: text for n, text in os.environ.items() if "TEST" not in n},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "0 findings." in ended.stderr
    processes = json.loads(target.read_text())["processes"]
    [whole] = [p for p in processes if len(p["libraries"]) >= 3]
    launches = whole["functions"]["LoadedExecutable_Execute"]["calls"]
    buffers = whole["handles"]["Buffer"]
    assert launches > 100
    assert buffers["created"] == buffers["destroyed"] > 300
