"""Writes ``docs/behaviour.md``: what dispatch does, from the tests that are marked with it.

`python docs/generate/behaviour.py record` runs the tests with the mark `support.behaviour` on each
platform (with names of test files: those alone) and keeps the results in
``docs/data/behaviour.json``; without words it writes the page of what is kept.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/behaviour.md"
ROWS = ROOT / "docs/data/behaviour.toml"
RESULTS = ROOT / "docs/data/behaviour.json"
PLATFORMS = {
    "cpu": {},
    "xla_cpu": {"JAX_PJRT_CLIENT_CREATE_OPTIONS": "cpu_device_count:8"},
    "numpy": {"PLUGRT_CLIENT_CREATE_OPTIONS": "numpy:num_devices:8"},
}
"""The platforms of the page, with the variables that give each of them 8 devices."""
INTRODUCTION = """\
<!-- Written by docs/generate/behaviour.py from the tests with the mark `behaviour`. -->
# What dispatch does, and where

Each line is a test: what holds, on which platform it ran through, and whether JAX does the same.
*cpu* is jaxlib's client, *xla_cpu* a PJRT library, *numpy* the SDK's NumPy backend. Where a
platform lacks what a test needs, the reason is below the table.
"""
_TARGET = re.compile(r"\bruns_apart\(\"([\w-]+)\"\)")


@dataclass(frozen=True)
class Behaviour:
    """A marked test."""

    test: str
    """Its file and its name, as pytest's ``file::name``."""
    row: int
    holds: str
    jax: str


Results = dict[str, dict[str, str]]
"""Test to platform to ``passed``, or why it did not run there."""


def read_rows() -> dict[int, str]:
    """Returns the rows' titles."""
    return {int(n): title for n, title in tomllib.loads(ROWS.read_text("utf-8"))["rows"].items()}


def read_results() -> Results:
    """Returns what is kept of the last runs."""
    results: Results = json.loads(RESULTS.read_text("utf-8"))
    return results


def collect(folder: Path = ROOT / "tests") -> list[Behaviour]:
    """Returns the marked tests below ``folder``, read from the source, in the order of rows."""
    found = [
        one
        for path in sorted(folder.rglob("test_*.py"))
        if "@behaviour(" in (source := path.read_text("utf-8"))
        for one in _read_marks(source, path.relative_to(folder.parent).as_posix())
    ]
    return sorted(found, key=lambda b: b.row)


def _read_marks(source: str, file: str) -> Iterator[Behaviour]:
    for function in ast.walk(ast.parse(source)):
        for mark in getattr(function, "decorator_list", []):
            if isinstance(mark, ast.Call) and getattr(mark.func, "id", "") == "behaviour":
                row, holds = map(ast.literal_eval, mark.args)
                more = {word.arg: ast.literal_eval(word.value) for word in mark.keywords}
                jax = more.get("jax", "same")
                yield Behaviour(f"{file}::{function.name}", row, holds, jax)  # type: ignore[attr-defined]


def page(tests: Sequence[Behaviour] | None = None, results: Results | None = None) -> str:
    """Returns the page."""
    tests = collect() if tests is None else tests
    results = read_results() if results is None else results
    out = [INTRODUCTION]
    for row, title in read_rows().items():
        of_row = [test for test in tests if test.row == row]
        if of_row:
            out += [f"## {row}. {title}\n", "\n".join(_table(of_row, results)) + "\n"]
    return "\n".join(out)


def _table(tests: Iterable[Behaviour], results: Results) -> Iterator[str]:
    reasons: dict[str, int] = {}
    yield "| what holds | " + " | ".join(PLATFORMS) + " | in JAX | test |"
    yield "| :-- |" + " :-: |" * len(PLATFORMS) + " :-- | :-- |"
    for test in tests:
        found = [results[test.test][platform] for platform in PLATFORMS]
        cells = [_cell(outcome, reasons) for outcome in found]
        file, name = test.test.split("::")
        words = [test.holds, *cells, test.jax, f"[`{name}`](../{file})"]
        yield f"| {' | '.join(word.replace('|', chr(92) + '|') for word in words)} |"
    for reason, number in reasons.items():
        yield f"\n({number}) {reason}"


def _cell(outcome: str, reasons: dict[str, int]) -> str:
    if outcome == "passed":
        return "yes"
    return f"({reasons.setdefault(outcome, len(reasons) + 1)})"


def target_of(file: str) -> str:
    """Returns the session of nox that runs a file of tests; empty for those of ``make test``."""
    found = _TARGET.search((ROOT / file).read_text("utf-8"))
    return found[1] if found else ""


def run(platform: str, files: Iterable[str]) -> dict[str, str]:
    """Runs the marked tests of these files on a platform; returns how each of them went.

    A test of several cases passed where one did and none failed. Exits where one failed.
    """
    outcomes: dict[str, str] = {}
    for target, group in groupby(sorted(files, key=target_of), target_of):
        outcomes |= _run(platform, target, [*group])
    return outcomes


def _run(platform: str, target: str, files: Sequence[str]) -> dict[str, str]:
    own = ("PYTEST_", "JAX_PLATFORM", "JAX_PJRT", "PJRT_", "PLUGRT_CLIENT")
    env = {k: v for k, v in os.environ.items() if not k.startswith(own)}
    env |= {
        "JAX_PLATFORMS": platform,
        "PLUGRT_TEST_TARGET": f"{target},slow",
        **PLATFORMS[platform],
    }
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
        command += ["-m", "behaviour", "-o", "junit_family=xunit1", f"--junitxml={report}", *files]
        done = subprocess.run(
            command, cwd=ROOT, env=env, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"on {platform}:\n{done.stdout[-8000:]}{done.stderr[-2000:]}")
        return read_report(ElementTree.parse(report))


def read_report(report: ElementTree.ElementTree[ElementTree.Element]) -> dict[str, str]:
    """Returns how each test of a JUnit file (``junit_family=xunit1``) went, by file and name."""
    outcomes: dict[str, str] = {}
    for case in report.iter("testcase"):
        name = f"{case.get('file')}::{str(case.get('name')).partition('[')[0]}"
        skipped = case.find("skipped")
        if skipped is None:
            outcomes[name] = "passed"
        else:
            outcomes.setdefault(name, str(skipped.get("message")))
    return outcomes


def record(files: Sequence[str]) -> None:
    """Runs the marked tests (of ``files``, else all) on each platform and keeps the results."""
    tests = [test.test for test in collect()]
    here = sorted({test.split("::")[0] for test in tests} & {*(files or _files(tests))})
    if unknown := sorted({*files} - {*here}):
        raise SystemExit(f"no test of {', '.join(unknown)} is marked with behaviour")
    results = {name: of for name, of in read_results().items() if name.split("::")[0] not in here}
    for platform in PLATFORMS:
        for name, outcome in run(platform, here).items():
            results.setdefault(name, {})[platform] = outcome
    kept = {name: results[name] for name in sorted(results) if name in tests}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(of)}" for name, of in kept.items())
    RESULTS.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def _files(tests: Iterable[str]) -> set[str]:
    return {test.split("::")[0] for test in tests}


def main() -> None:
    """Records, if that is asked for, and writes the page."""
    if sys.argv[1:2] == ["record"]:
        record(sys.argv[2:])
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
