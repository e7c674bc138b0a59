"""Commands whose standard streams are closed, full, or written to by libraries."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.clib import needs_cc
from support.distributions import install_plugin, run_cli
from support.effort import WHOLE
from support.sick_libraries import make_libraries

PROGRAM = "import plugrt.cli, sys; plugrt.cli.main(sys.argv[1:])"


def shell(redirection: str, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    tests = Path(__file__).parents[2]
    folder = environ.pop("folder")
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {redirection}', "sh", sys.executable, "-c", PROGRAM, *arguments],
        env={**os.environ, "PYTHONPATH": f"{folder}:{tests}", **environ},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


CLOSED = ("<&-", ">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-")
FEWER = CLOSED if WHOLE else CLOSED[-1:]
"""Uses for the commands that end like the first one."""
CASES = [
    *((closed, ("devices",)) for closed in CLOSED),
    *((closed, ("devices", "--json")) for closed in FEWER),
    *((closed, ("doctor", "--json")) for closed in FEWER),
]


@pytest.mark.parametrize(("redirection", "arguments"), CASES)
def test_a_closed_stream_changes_no_exit_code(
    redirection: str, arguments: tuple[str, ...], tmp_path: Path
) -> None:
    install_plugin(tmp_path, "a")
    done = shell(redirection, *arguments, folder=str(tmp_path), JAX_PLATFORMS="a")
    assert (done.returncode, done.stderr) == (0, "")
    assert bool(done.stdout) is (">&-" not in redirection.replace("2>&-", ""))


def test_with_closed_streams_an_error_is_still_an_exit_code(tmp_path: Path) -> None:
    done = shell("<&- >&- 2>&-", "devices", folder=str(tmp_path), JAX_PLATFORMS="none-such")
    assert done.returncode == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [("devices",), ("devices", "--json")])
def test_a_full_disk_is_one_error(arguments: tuple[str, ...], tmp_path: Path) -> None:
    install_plugin(tmp_path, "a")
    done = shell(">/dev/full", *arguments, folder=str(tmp_path), JAX_PLATFORMS="a")
    assert done.returncode == 1
    assert done.stderr == "error: [Errno 28] No space left on device\n"


@needs_cc
def test_a_librarys_output_does_not_damage_json(tmp_path: Path) -> None:
    library = make_libraries(tmp_path)["does_print"]
    done = run_cli("devices", "--json", JAX_PLATFORMS="does_print",
                   PJRT_NAMES_AND_LIBRARY_PATHS=f"does_print:{library}",
                   PLUGRT_CACHE_DIR=str(tmp_path / "cache"))  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [device["id"] for device in json.loads(done.stdout)] == [0, 1]
    assert '"ended": 2' in done.stderr
