"""PJRT libraries for CPUs that other projects built: tests/pjrt's programs, and the kit."""

from __future__ import annotations

import importlib.metadata
import signal
import sys
from pathlib import Path

import pytest

from support import children
from support.cpu_libraries import FAILS, KIT, compare_with_kit, run_programs
from support.distributions import run_cli
from support.markdown import ROOT

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(params=FAILS)
def library(request: pytest.FixtureRequest) -> tuple[str, str]:
    """A distribution and the path of its library."""
    return request.param, path_of(request.param)


def path_of(distribution: str) -> str:
    """Returns the path of a distribution's library; skips the test where it is not installed."""
    try:
        files = importlib.metadata.files(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"needs {distribution}")
    [path] = [file for file in files if file.name.endswith(".so")]
    return str(path.locate())


def test_programs(library: tuple[str, str]) -> None:
    run_programs(*library)


def test_the_kit_finds_what_is_known(library: tuple[str, str], tmp_path: Path) -> None:
    name, path = library
    run_cli("conform", path, *KIT, f"--report={tmp_path / 'report.json'}", timeout=280)
    compare_with_kit(name, tmp_path / "report.json")


def test_an_exception_past_an_unwinder_of_the_library_s_own_ends_the_process() -> None:
    """As SECURITY.md says of fastatomstruct-xla-cpu, whose C++ runtime sees no handler of ours."""
    path = path_of("fastatomstruct-xla-cpu")
    script = ROOT / "docs/findings/option_type.py"
    done = children.run([sys.executable, script, path, "cpu_device_count"], timeout=120)
    assert done.returncode == -signal.SIGABRT
    assert "libc++abi: terminating due to uncaught exception" in done.stderr
