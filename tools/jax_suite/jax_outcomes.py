"""How JAX's own tests end on a platform beside JAX's CPU, and why those fail that fail."""

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
    """Returns the outcomes of a run of pytest, from the report that it wrote for JUnit."""
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
    """Returns the message of each test that failed, from such a report."""
    found: dict[str, str] = {}
    for case in ElementTree.parse(path).iter("testcase"):
        name = f"{case.get('classname', '').removeprefix('tests.')}.{case.get('name')}"
        for end in case:
            if end.tag in ("failure", "error"):
                found[name] = f"{end.get('message', '')}\n{end.text or ''}"
    return found


def find_absences(messages: Mapping[str, str], path: Path) -> dict[str, str]:
    """Returns why tests that failed do not apply to plugrt: the reason of the first rule that fits.

    A rule of the file names, by regular expressions, names of JAX's that plugrt does not aim to
    have. It fits a test that failed since it used such a name. Raises ValueError for a rule without
    a reason.
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


def read_reasons(path: Path) -> dict[str, str]:
    """Returns the reason of each known failure; a test that is listed twice is a ValueError."""
    found: dict[str, str] = {}
    for entry in tomllib.loads(path.read_text(encoding="utf-8"))["failures"]:
        for name in entry["tests"]:
            if name in found:
                raise ValueError(f"{path}: {name} is listed twice")
            found[name] = entry["reason"]
    return found


@dataclass(frozen=True)
class Comparison:
    """Tests that pass on JAX's CPU, by how they end on the other platform."""

    passed: tuple[str, ...]
    failed: tuple[str, ...]
    """Failed or skipped there, or not run to an end."""
    new: tuple[str, ...]
    """Those of ``failed`` for which no reason is known."""
    stale: tuple[str, ...]
    """Those with a reason that do not fail any more, or that JAX's CPU does not pass."""

    @property
    def share(self) -> float:
        """The share that passes, from 0 to 1."""
        return len(self.passed) / max(1, len(self.passed) + len(self.failed))

    @property
    def is_as_known(self) -> bool:
        """Whether exactly those fail that have a reason."""
        return not (self.new or self.stale)


def compare(cpu: Outcomes, other: Outcomes, reasons: Mapping[str, str]) -> Comparison:
    """Compares the outcomes on a platform with those on JAX's CPU.

    Reasons count for the files (first parts of the names) of which ``cpu`` has tests.
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
