"""Compares the outcomes of JAX's own tests on a platform with those on JAX's CPU, with reasons."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

Outcomes = Mapping[str, str]
"""``passed``, ``failed`` or ``skipped`` for each test, such as ``pmap_test.PmapTest.testPsum``."""


def read_report(path: Path) -> dict[str, str]:
    """Returns the outcomes of a pytest run from its JUnit report."""
    found: dict[str, str] = {}
    for case in ElementTree.parse(path).iter("testcase"):
        name = f"{case.get('classname', '').removeprefix('tests.')}.{case.get('name')}"
        ends = {child.tag for child in case}
        if ends & {"failure", "error"}:
            found[name] = "failed"
        else:
            found.setdefault(name, "skipped" if "skipped" in ends else "passed")
    return found


def read_messages(path: Path) -> dict[str, str]:
    """Returns the message of each failed test from a JUnit report."""
    found: dict[str, str] = {}
    for case in ElementTree.parse(path).iter("testcase"):
        name = f"{case.get('classname', '').removeprefix('tests.')}.{case.get('name')}"
        for end in case:
            if end.tag in ("failure", "error"):
                found[name] = f"{end.get('message', '')}\n{end.text or ''}"
    return found


def find_absences(messages: Mapping[str, str], path: Path) -> dict[str, str]:
    """Returns reasons why failed tests do not apply to plugrt, each from the first matching rule.

    A rule of the file has regular expressions for names of JAX that plugrt deliberately lacks. It
    matches a test that failed because it used such a name. Raises ValueError for a rule without a
    reason.
    """
    rules = []
    for entry in tomllib.loads(path.read_text(encoding="utf-8"))["absences"]:
        if not entry["reason"]:
            raise ValueError(f"{path}: {entry['names']} have no reason")
        rules += [(re.compile(name), entry["reason"]) for name in entry["names"]]
    found = {}
    for test, message in messages.items():
        for line in re.findall(r"^E +(.*(?:NotInPlugrt: |has no attribute '_).*)$", message, re.M):
            used = re.search(r"NotInPlugrt: (\S+)|has no attribute '(_\w+)'", line)
            name = used and (used[1] or used[2])
            for rule, reason in rules:
                if name and rule.fullmatch(name):
                    found.setdefault(test, reason)
    return found


def read_reasons(path: Path, platform: str = "") -> dict[str, str]:
    """Returns the reason of each known failure on a platform; entries may name the only one.

    Raises ValueError for a test listed twice.
    """
    found: dict[str, str] = {}
    for entry in tomllib.loads(path.read_text(encoding="utf-8"))["failures"]:
        for name in entry["tests"] if entry.get("platform", platform) == platform else ():
            if name in found:
                raise ValueError(f"{path}: {name} is listed twice")
            found[name] = entry["reason"]
    return found


@dataclass(frozen=True)
class Comparison:
    """Tests that pass on JAX's CPU, grouped by their outcome on the other platform."""

    passed: tuple[str, ...]
    failed: tuple[str, ...]
    """Tests that failed or were skipped there, or did not finish."""
    new: tuple[str, ...]
    """The failed tests without a known reason."""
    stale: tuple[str, ...]
    """Tests with a reason that pass now, or that fail on JAX's CPU."""

    @property
    def share(self) -> float:
        """The share of passing tests, from 0 to 1."""
        return len(self.passed) / max(1, len(self.passed) + len(self.failed))

    @property
    def is_as_known(self) -> bool:
        """Whether exactly the tests with a reason fail."""
        return not (self.new or self.stale)


def compare(cpu: Outcomes, other: Outcomes, reasons: Mapping[str, str]) -> Comparison:
    """Compares the outcomes on a platform with those on JAX's CPU.

    Only the reasons for files (first parts of the names) with tests in ``cpu`` count.
    """
    expected = [name for name, end in cpu.items() if end == "passed"]
    failed = [name for name in expected if other.get(name) != "passed"]
    files = {name.partition(".")[0] for name in cpu}
    known = {name for name in reasons if name.partition(".")[0] in files}
    return Comparison(
        passed=tuple(name for name in expected if other.get(name) == "passed"),
        failed=tuple(failed),
        new=tuple(name for name in failed if name not in known),
        stale=tuple(sorted(known.difference(failed))),
    )
