"""The sessions of `noxfile.py`: each has a docstring, and its scripts exist."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

from support.markdown import ROOT, load_script

FILE = load_script("noxfile.py")
NOX = Path(sys.executable).with_name("nox")


class Recorder:
    """A session that notes commands instead of running them."""

    def __init__(self) -> None:
        self.posargs = ["given"]
        self.commands: list[tuple[str, ...]] = []

    def run(self, *command: str, env: dict[str, str] | None = None) -> None:
        self.commands.append(command)


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
        recorder = Recorder()
        getattr(FILE, name)(recorder)
        assert {command[0] for command in recorder.commands} == {"make", FILE.PYTHON}
        assert recorder.commands[0] == ("make", "--silent", ".venv/.synced")
        for command in recorder.commands[1:]:
            assert command[0] == "make" or command[-1] == "given"
            assert command[0] == "make" or exists(*command[1:]), f"{name}: {command}"


def test_sessions_make_no_environment() -> None:
    assert FILE.nox.options.default_venv_backend == "none"
    assert "\n$(STAMP): $(PROJECTS)\n" in (ROOT / "Makefile").read_text(encoding="utf-8")


def exists(script: str, *arguments: str) -> bool:
    """Whether a script, or a module after ``-m``, and the files among the arguments are there."""
    paths = [part for part in (script, *arguments) if "/" in part or part == "tests"]
    if script == "-m" and importlib.util.find_spec(arguments[0]) is None:
        return False
    return (script == "-m" or script in paths) and all((ROOT / path).exists() for path in paths)


def test_missing_scripts_are_noticed() -> None:
    assert exists("tools/test_jax.py", "-q")
    assert not exists("tools/absent.py")
    assert not exists("-m", "absent_module")
    assert not exists("-m", "pytest", "tests/absent.py")
