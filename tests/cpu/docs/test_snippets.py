"""Every snippet of README and docs runs unchanged."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from support.apart import runs_apart
from support.markdown import ROOT, blocks, expected_output, pages

pytestmark = runs_apart("site")

ENVIRONMENT = {**os.environ, "JAX_NUM_CPU_DEVICES": "4"}
ENVIRONMENT.pop("JAX_PLATFORMS", None)  # a new user has not set it
ENVIRONMENT["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{ENVIRONMENT['PATH']}"


def _pages_with(language: str) -> list[str]:
    return [str(p.relative_to(ROOT)) for p in pages() if blocks(p, language)]


@pytest.mark.parametrize("page", _pages_with("python"))
def test_python_snippets_run_in_order(page: str, tmp_path: Path) -> None:
    """The blocks of a page are one program; ``print(x)  # [..]`` prints the comment's text."""
    code = "\n".join(block.text for block in blocks(ROOT / page, "python"))
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{page} fails:\n{done.stderr}"
    printed = [line.strip() for line in done.stdout.splitlines()]
    for line in expected_output(code):
        assert line in printed, f"{page} says that {line!r} is printed; printed was:\n{done.stdout}"


@pytest.mark.parametrize("page", _pages_with("console"))
def test_console_snippets_exit_0(page: str) -> None:
    for block in blocks(ROOT / page, "console"):
        commands = [line[2:] for line in block.text.splitlines() if line.startswith("$ ")]
        assert commands, f"{page}:{block.line} holds no command"
        for command in commands:
            done = subprocess.run(
                shlex.split(command),
                cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False,
            )  # fmt: skip
            assert done.returncode == 0, f"{page}: {command!r} fails:\n{done.stderr}{done.stdout}"


def test_the_pages_have_snippets() -> None:
    assert "README.md" in _pages_with("python")
    assert "README.md" in _pages_with("console")
