"""A pytest plugin: measures the processor's time of each test, and writes `slow_tests.txt` anew.

``nox -s costs`` runs the suite with it. A test function is slow if its cases need `SECONDS` or more
together, unless its file is one of `KEPT`. The session ``slow`` runs it in place of `make test`.
"""

from __future__ import annotations

import os
import resource
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).with_name("slow_tests.txt")
SECONDS = 0.8
KEPT = (
    "tests/contract/",
    "tests/cpu/docs/test_examples.py",
    "tests/cpu/transforms/test_changed_arguments.py",
    "tests/nothing/test_broad_handlers.py",
    "tests/nothing/test_import_circles.py",
    "tests/nothing/test_import_rules.py",
    "tests/nothing/test_process_state.py",
)
"""The tests that fail most often after a change."""


def read_slow_tests(file: Path = FILE) -> frozenset[str]:
    """Returns the names of the slow test functions, without parameters."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))


def _seconds() -> float:
    """Returns the time of this process and of its children, ended or not."""
    own, ended = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime + _of_living_children()


def _of_living_children() -> float:
    pid, ticks = os.getpid(), 0
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        # The second field is a name in parentheses; 14 to 17 are the times, also of children.
        fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


costs = Counter[str]()
"""Seconds by test function, of this process's tests, and in the end of its workers' tests."""


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Measures a test with its fixtures."""
    before = _seconds()
    try:
        return (yield)
    finally:
        costs[item.nodeid.partition("[")[0]] += _seconds() - before


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Adds a worker's measurements."""
    costs.update(node.workeroutput["costs"])


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Gives a worker's times to the main process, which writes the file."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["costs"] = dict(costs)
        return
    write({name: seconds for name, seconds in costs.items() if not name.startswith(KEPT)})


def write(seconds: Mapping[str, float], file: Path = FILE) -> None:
    """Writes the names of the slow functions."""
    slow = sorted(name for name, taken in seconds.items() if taken >= SECONDS)
    total = sum(seconds[name] for name in slow)
    heading = f"# Of {SECONDS} s of CPU or more; {total:.0f} s together. By `nox -s costs`.\n"
    file.write_text(heading + "".join(f"{name}\n" for name in slow), encoding="utf-8")
