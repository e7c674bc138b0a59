"""Which tests are slow is measured, and read back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support import costs

TESTS = """
import subprocess, sys, time, pytest

def work(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: pass

@pytest.mark.parametrize("case", range(3))
def test_slow_together(case): work(0.3)

def test_slow_in_a_child():
    subprocess.run([sys.executable, "-c", "sum(i * i for i in range(20_000_000))"], check=True)

def test_quick(): work(0.2)
"""


def test_functions_are_measured_with_their_children(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    program = (
        "import pytest, sys; from pathlib import Path; from support import costs; "
        "costs.write.__defaults__ = (Path('slow.txt'),); "
        "sys.exit(pytest.main(['-q', '-p', 'support.costs', '-n', '2']))"
    )
    command = [sys.executable, "-c", program]
    environment = {"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    names = {"test_some.py::test_slow_together", "test_some.py::test_slow_in_a_child"}
    assert costs.read_slow_tests(tmp_path / "slow.txt") == names


def test_what_is_kept_is_not_listed() -> None:
    assert not [name for name in costs.read_slow_tests() if name.startswith(costs.KEPT)]
