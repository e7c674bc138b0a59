"""Tests that interrupt a child pass however the suite was started: here, with SIGINT ignored."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import children

TESTS = Path(__file__).parents[2]


@pytest.fixture
def _ignored() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_ignored")
def test_a_signal_interrupts_the_child() -> None:
    code = "import time; print('go', flush=True); time.sleep(100)"
    with children.start([sys.executable, "-c", code]) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "go\n"
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=60)
    assert errors.endswith("KeyboardInterrupt\n")
    assert child.returncode == -signal.SIGINT
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_children_with_interrupts_start_by_the_helper() -> None:
    """Children of ``subprocess`` inherit an ignored SIGINT, and then no interrupt arrives.

    A child's code may set the handler itself.
    """
    sets = "signal.signal(signal.SIGINT, signal.default_int_handler)"
    interrupts = re.compile(r"SIGINT|interrupt_main")
    starts = re.compile(r"subprocess\.(Popen|run)\(")
    files = [f for f in TESTS.rglob("*.py") if f.name != "children.py" and f != Path(__file__)]
    texts = {str(f.relative_to(TESTS)): f.read_text() for f in files}
    assert any(interrupts.search(text) for text in texts.values())
    assert [
        n for n, t in texts.items() if interrupts.search(t) and starts.search(t) and sets not in t
    ] == []
