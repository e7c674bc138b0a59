"""A closed reader, or an encoding that lacks a character, does not change the exit code."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from support import children
from support.distributions import install_plugin

TESTS = Path(__file__).parents[2]
PLUGRT = '"$PYTHON" -c "import plugrt.cli; plugrt.cli.main()"'
SOURCE = "from support.fake_client import FakePlugin\nplugin = FakePlugin('a', count={})"


def shell(line: str, folder: Path, **environ: str) -> tuple[int, str, str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "PLUGRT_", "PJRT_"))}
    path = os.pathsep.join(map(str, (folder, TESTS)))
    env |= {"PYTHON": sys.executable, "PYTHONPATH": path, "JAX_PLATFORMS": "a", **environ}
    done = children.run(["bash", "-c", f"set -o pipefail; {line}"], env=env, timeout=100)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def site(tmp_path: Path) -> Path:
    install_plugin(tmp_path, "a", SOURCE.format(3))
    return tmp_path


@pytest.mark.parametrize("command", ["devices", "devices --json"])
def test_a_reader_that_goes_away(site: Path, command: str) -> None:
    """The output is much larger than a pipe's buffer."""
    (site / "a_module.py").write_text(SOURCE.format(3000))
    code, output, errors = shell(f"{PLUGRT} {command} | head -n 1", site)
    assert (code, errors, len(output.splitlines())) == (0, "", 1)


def test_the_code_of_a_failure_stands_too(site: Path) -> None:
    assert shell(f"{PLUGRT} nosuch 2>&-", site)[0] == 2
    code, output, errors = shell(f"{PLUGRT} doctor | head -n 1", site, JAX_PLATFORMS="b")
    assert (code, errors, len(output.splitlines())) == (1, "", 1)


def test_a_character_that_the_terminal_lacks(site: Path) -> None:
    (site / "a_module.py").write_text(SOURCE.format("1, kind='é'"))
    code, output, errors = shell(f"{PLUGRT} devices", site, PYTHONIOENCODING="ascii")
    assert (code, errors) == (0, ""), output


def test_files_never_get_the_number_of_a_closed_stream(site: Path) -> None:
    (site / "a_module.py").write_text(
        SOURCE.format(1) + "\nfile = open(__file__)\nassert file.fileno() > 2, file.fileno()\n"
    )
    assert shell(f"{PLUGRT} devices <&- >&- 2>&-", site)[0] == 0
