"""The sessions of `noxfile.py`, the targets of the Makefile, and the ones that CI runs.

CI runs the sessions of the tests that `make test` skips.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from support.costs import read_slow_tests
from support.markdown import ROOT, load_script

FILE = load_script("noxfile.py")
NOX = Path(sys.executable).with_name("nox")
APART = [
    (str(path.relative_to(ROOT)), session)
    for path in sorted((ROOT / "tests").rglob("test_*.py"))
    for session in sorted({*re.findall(r"\bruns_apart\(\"(.+?)\"\)", path.read_text("utf-8"))})
]
"""Files, and the sessions that run tests of them."""


class Recorder:
    """A session that records commands, and their environment, instead of running them."""

    def __init__(self) -> None:
        self.posargs = ["given"]
        self.env: dict[str, str] = {}
        self.commands: list[tuple[str, ...]] = []
        self.environments: list[dict[str, str]] = []

    def run(self, *command: str, env: dict[str, str] | None = None) -> None:
        self.commands.append(command)
        self.environments.append(env or {})


def recorded(name: str) -> Recorder:
    """Returns the commands of a session."""
    recorder = Recorder()
    getattr(FILE, name)(recorder)
    return recorder


def sessions() -> dict[str, str]:
    """Returns the description of each session that ``nox -l`` lists."""
    command = [str(NOX), "--noxfile", str(ROOT / "noxfile.py"), "--list"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return dict(re.findall(r"^[-*] (\S+)(?: -> (.*))?$", listed.stdout, re.MULTILINE))


def test_each_session_is_described_and_runs_scripts_of_the_tree() -> None:
    found = sessions()
    assert found
    for name, description in found.items():
        assert description, f"{name} has no docstring"
        commands = recorded(name).commands
        assert commands[0] == ("make", "--silent", ".venv/.synced")
        assert any(command[-1] == "given" for command in commands), name
        for program, *arguments in commands:
            assert program in ("make", FILE.PYTHON, ".venv/bin/uv")
            assert program != FILE.PYTHON or exists(*arguments), f"{name}: {arguments}"


@pytest.mark.parametrize(("file", "name"), APART)
def test_apart_tests_are_run_by_a_session_of_ci(file: str, name: str) -> None:
    session = recorded(name)
    [(command, environment)] = [
        (command, environment)
        for command, environment in zip(session.commands, session.environments, strict=True)
        if "apart" in command
    ]
    assert environment["PLUGRT_TEST_TARGET"] == name
    assert ("-m", "apart") in pairwise(command), "make test runs what else is in its files"
    assert any(str(path) in command for path in (file, *Path(file).parents))
    assert {name, f"nox-{name}"} & run_by_ci()


def test_slow_tests_are_there_and_run_by_ci() -> None:
    slow = read_slow_tests()
    assert slow
    for name in slow:
        file, *_, function = name.split("::")
        assert f"def {function}(" in (ROOT / file).read_text("utf-8"), name
    assert recorded("slow").commands[1][-2:] == ("tests", "given")
    assert "nox-slow" in run_by_ci()


def test_ci_runs_targets_of_make_and_sessions() -> None:
    known = {*targets(), *(f"nox-{name}" for name in sessions())}
    assert run_by_ci() <= known
    assert {"demo", "test", "lint", "types", "release", "nox-vendors"} <= run_by_ci()


def test_people_need_few_targets_of_make() -> None:
    assert len(targets()) <= 12
    listed = subprocess.run(
        ["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert {*re.findall(r"^make (\w+)", listed.stdout, re.MULTILINE)} == {*targets()}


def targets() -> list[str]:
    """Returns the Makefile's targets for people."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    [line] = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    written = re.findall(r"^([a-z]\w*):(?!=)", makefile, re.MULTILINE)
    assert sorted(written) == sorted(line.split())
    return written


def run_by_ci() -> set[str]:
    """Returns the words that `.ci/run` gives to `tools/fresh.sh`."""
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    [line] = re.findall(r"^tools/fresh\.sh (.*)$", script, re.MULTILINE)
    return set(re.split(r"[ +]", line))


def exists(script: str, *arguments: str) -> bool:
    """Whether a script, or a module after ``-m``, and the files among the arguments exist.

    Files in ``build/`` are output.
    """
    paths = [part for part in (script, *arguments) if "/" in part or part == "tests"]
    paths = [path for path in paths if not path.startswith("build/")]
    if script == "-m" and importlib.util.find_spec(arguments[0]) is None:
        return False
    return (script == "-m" or script in paths) and all((ROOT / path).exists() for path in paths)
