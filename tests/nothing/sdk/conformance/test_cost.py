"""The work of ``plugrt conform`` itself for one check, without the children that run it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support import children

COUNTED = """
import sys, threading
import plugrt_sdk.conformance.checks
from plugrt.cli import main
calls = [0]
def count(frame, event, argument):
    calls[0] += event == "call"
sys.argv = ["plugrt", "conform", "numpy", "--check", "buffers.read_twice"]
threading.setprofile(count)
sys.setprofile(count)
try:
    main()
finally:
    sys.setprofile(None)
    print(calls[0])
"""


def test_one_check_costs_few_calls_in_the_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = children.run([sys.executable, "-c", COUNTED], timeout=120)
    assert done.returncode == 0, done.stderr
    assert "1 PASS, " in done.stdout
    assert 1_000 < int(done.stdout.split()[-1]) <= 50_000
