"""mypy and pyright accept the right calls and find each of the wrong ones: `make types` runs it."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from support.apart import runs_apart

pytestmark = runs_apart("types")
HERE = Path(__file__).parent
ROOT = HERE.parents[2]
RIGHT, WRONG = HERE / "right_calls.py", HERE / "wrong_calls.py"
Found = dict[Path, dict[int, set[str]]]
"""The codes of errors, by file and line."""


def marked() -> dict[int, set[str]]:
    """Returns the lines that are marked as wrong, with mypy's codes."""
    lines = enumerate(WRONG.read_text().splitlines(), 1)
    marks = ((i, re.search(r"# wrong: (.*)", line)) for i, line in lines)
    return {i: set(mark[1].split(", ")) for i, mark in marks if mark}


@pytest.fixture(scope="module")
def mypy(pytestconfig: pytest.Config) -> Found:
    assert pytestconfig.cache is not None
    command = [
        sys.executable, "-m", "mypy", "--strict", "--output", "json", "--config-file", "",
        "--cache-dir", str(pytestconfig.cache.mkdir("mypy")), str(RIGHT), str(WRONG),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found: Found = defaultdict(lambda: defaultdict(set))
    for line in done.stdout.splitlines():
        item = json.loads(line)
        if item["severity"] == "error":
            found[(ROOT / item["file"]).resolve()][item["line"]].add(item["code"])
    return found


@pytest.fixture(scope="module")
def pyright() -> Found:
    command = [
        Path(sys.executable).with_name("pyright"), "--outputjson", "--level", "error",
        "--pythonpath", sys.executable, str(RIGHT), str(WRONG),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, cwd=HERE, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found: Found = defaultdict(lambda: defaultdict(set))
    for item in json.loads(done.stdout)["generalDiagnostics"]:
        line = item["range"]["start"]["line"] + 1
        found[Path(item["file"]).resolve()][line].add(item.get("rule", item["message"]))
    return found


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_right_calls_are_taken(checker: str, request: pytest.FixtureRequest) -> None:
    found: Found = request.getfixturevalue(checker)
    assert dict(found[RIGHT]) == {}


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_every_wrong_call_is_found_and_no_other(
    checker: str, request: pytest.FixtureRequest
) -> None:
    found: Found = request.getfixturevalue(checker)
    wrong, lines = set(found[WRONG]), set(marked())
    assert lines - wrong == set(), "lines that are wrong, and were taken"
    assert wrong - lines == set(), "lines that are right, and were refused"


def test_mypy_finds_what_the_marks_say(mypy: Found) -> None:
    """So mypy refuses each call for its fault, and not for a missing name."""
    marks = marked()
    assert {line: codes for line, codes in mypy[WRONG].items() if line in marks} == marks


def test_there_are_enough_of_both() -> None:
    calls = [n for n in ast.walk(ast.parse(RIGHT.read_text())) if isinstance(n, ast.Call)]
    names = [n.func.id for n in calls if isinstance(n.func, ast.Name)]
    assert names.count("assert_type") >= 80
    assert len(marked()) >= 40
