"""One suite, every backend: the behavioural tests of the core, unchanged, on a real PJRT library.

They run on the cpu plugin by themselves; here they run in three child processes on ``xla_cpu``. The
tests check the library's capabilities for missing features.

This is slow, so `make test` skips it, and reports that: `nox -s xla_cpu`, which CI runs for each
change, runs each test with one of its cases (`support/sampled_cases.py`), `nox -s long` all.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest

from support.apart import runs_apart
from support.areas import FEWEST, OF_NO_BACKEND
from support.effort import WHOLE
from support.markdown import load_script
from support.xla_cpu import library_path, needs_library

behaviours = load_script("docs/generate/behaviour.py")
TESTS = Path(__file__).parents[1]
PARTS = [["array_api", "lax", "programs", "random", "tracing"], ["execution"], ["transforms"]]
"""The areas of each child process, which all need about the same time for a sample."""
MAY_SKIP = re.compile(
    "torch|Graphviz|the record is of JAX|^the library |^no [a-z0-9_ ]+ here", re.IGNORECASE
)
"""Valid reasons to skip; the platform is one only for features that this library itself lacks."""


def run_areas(areas: Sequence[str], report: Path) -> subprocess.CompletedProcess[str]:
    """Runs the tests of some areas on 8 devices of the library; ``report`` is a JUnit file."""
    own = ("PYTEST_", "JAX_PLATFORM", "PJRT_")
    env = {k: v for k, v in os.environ.items() if not k.startswith(own)}
    env |= {"JAX_PLATFORMS": "xla_cpu", "PLUGRT_TEST_TARGET": "slow"}
    env["JAX_PJRT_CLIENT_CREATE_OPTIONS"] = "cpu_device_count:8"
    env["PYTHONPATH"] = str(TESTS)
    options = ["-q", "-n", "0", "-p", "no:cacheprovider", "-p", "support.backend_name"]
    options += ["-p", "support.sampled_cases", "-o", "junit_family=xunit1"]
    options += [f"--ignore={TESTS / 'cpu' / file}" for file in OF_NO_BACKEND]
    folders = [TESTS / "cpu" / area for area in areas]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, f"--junitxml={report}", *folders],
        env=env, cwd=TESTS.parent, capture_output=True, text=True, timeout=1180, check=False,
    )  # fmt: skip


@needs_library
@runs_apart("xla_cpu")
@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("areas", PARTS, ids="+".join)
def test_areas(areas: list[str], tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    done = run_areas(areas, report)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert str(library_path()) in done.stdout
    parsed = ElementTree.parse(report)
    cases = parsed.getroot().findall(".//testcase")
    # JUnit reports expected failures as skipped, too.
    skipped = [s.get("message", "") for case in cases for s in case.findall("skipped")]
    assert [reason for reason in skipped if not MAY_SKIP.search(reason)] == []
    passed = Counter(area_of(case) for case in cases if case.find("skipped") is None)
    assert {area for area in areas if passed[area] < FEWEST[area][WHOLE]} == set(), passed
    assert unlike_the_record(parsed) == {}, "docs/generate/behaviour.py record FILE"


def unlike_the_record(report: ElementTree.ElementTree[ElementTree.Element]) -> dict[str, str]:
    """Returns the outcomes of tests of docs/behaviour.md that differ from the record.

    If a test has several cases, the recorded one may have passed, and the sampled one be skipped.
    """
    cases = report.getroot().iter("testcase")
    names = [(str(case.get("file")), str(case.get("name")).partition("[")) for case in cases]
    several = {f"{file}::{name}" for file, (name, *_, of_case) in names if of_case}
    recorded = behaviours.read_results()
    return {
        test: outcome
        for test, outcome in behaviours.read_report(report).items()
        if test in recorded
        and outcome != recorded[test]["xla_cpu"]
        and (WHOLE or test not in several)
    }


def area_of(case: ElementTree.Element) -> str:
    """Returns the area of a test; JUnit's name of its class is ``tests.cpu.lax.test_loops``."""
    return str(case.get("classname")).split(".")[2]


def test_every_area_is_in_one_part() -> None:
    assert sorted(area for part in PARTS for area in part) == sorted(FEWEST)


def test_excluded_files_exist() -> None:
    """Otherwise a moved file would be run again unnoticed."""
    assert [file for file in OF_NO_BACKEND if not (TESTS / "cpu" / file).is_file()] == []


def test_every_area_runs_here_or_is_about_the_cpu_plugin() -> None:
    about_the_plugin = {
        "cli",
        "client",
        "differential",
        "distributed",
        "docs",
        "errors",
        "examples",
        "packaging",
        "plugins",
        "remote",
        "sdk",
        "stablehlo",
        "typing",
    }
    folders = {f.name for f in (TESTS / "cpu").iterdir() if any(f.rglob("test_*.py"))}
    assert folders == {*FEWEST, *about_the_plugin}
