"""PJRT libraries for CPUs that other projects built: tests/pjrt's programs, and the kit."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from support import children
from support.distributions import run_cli
from support.markdown import ROOT
from support.requirements import file_of, needs_package
from vendors.cpu_libraries import FAILS, KIT, compare_with_kit, run_programs

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        os.environ.get("PLUGRT_TEST_TARGET") != "vendors",
        reason="takes minutes: .venv/bin/nox -s vendors",
    ),
]


@pytest.fixture(params=[pytest.param(name, marks=needs_package(name, "vendors")) for name in FAILS])
def library(request: pytest.FixtureRequest) -> tuple[str, str]:
    """A distribution and the path of its library."""
    return request.param, str(file_of(request.param, "*.so"))


def test_programs(library: tuple[str, str]) -> None:
    run_programs(*library)


def test_the_kit_finds_what_is_known(library: tuple[str, str], tmp_path: Path) -> None:
    name, path = library
    run_cli("conform", path, *KIT, f"--report={tmp_path / 'report.json'}", timeout=560)
    compare_with_kit(name, tmp_path / "report.json")


@needs_package("fastatomstruct-xla-cpu", "vendors")
def test_an_exception_past_an_unwinder_of_the_library_s_own_ends_the_process() -> None:
    """As in SECURITY.md for fastatomstruct-xla-cpu, whose C++ runtime does not see our handler."""
    path = file_of("fastatomstruct-xla-cpu", "*.so")
    script = ROOT / "docs/findings/option_type.py"
    done = children.run([sys.executable, script, path, "cpu_device_count"], timeout=120)
    assert done.returncode == -signal.SIGABRT
    assert "libc++abi: terminating due to uncaught exception" in done.stderr
