"""Hundreds of libraries that break the C API's rules: the host survives, and names the library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.apart import runs_apart
from support.broken_library import BrokenLibrary
from support.clib import needs_cc
from support.effort import EFFORT, seeds
from support.native_core import unsanitized
from support.xla_cpu import library_path, needs_library

pytestmark = [
    runs_apart("lifetimes"),
    needs_cc,
    needs_library,
    unsanitized("it reads as many items as a library claims, beyond the memory that they give it"),
]

SEEDS = seeds(1)
"""The seeds of the plans: each chooses other calls to misbehave at."""
SHARE = 1.0 if EFFORT > 1 else 0.2
"""The share of the steps with a function in which its misbehaviours are tested."""
MINUTES = 20
"""The limit for a worker on a slow machine; it usually needs one."""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    real = library_path()
    assert real is not None
    return BrokenLibrary(tmp_path_factory.mktemp("broken"), real).path


def run_cases(library: Path, seed: int) -> Iterator[tuple[str, str]]:
    """Yields (case, its fault) for all cases; a worker that dies is replaced by another."""
    start, total = 0, 1
    while start < total:
        command = [sys.executable, "-m", "support.broken_steps"]
        command += [str(library), str(seed), str(SHARE), str(start)]
        folder = Path(__file__).parents[2]
        done = _run(command, folder)
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        assert lines, done.stderr
        total = lines[0]["cases"]
        names = {line["begin"]: line["case"] for line in lines if "begin" in line}
        ends = {line["end"]: line["wrong"] for line in lines if "end" in line}
        for number, case in names.items():
            ended = f"the process ended ({done.returncode}): {done.stderr[-1500:]}"
            yield case, ends.get(number, ended)
        start = max(names, default=start) + 1
        assert len(ends) < len(names) or start == total, done.stderr
        if len(ends) == len(names):
            yield "all cases in one process", done.stderr


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": str(folder)}
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env=env, timeout=60 * MINUTES
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_faults_of_libraries_are_handled(library: Path, seed: int) -> None:
    found = list(run_cases(library, seed))
    assert len(found) > 500
    wrong = [f"{case}: {fault}" for case, fault in found if fault]
    assert not wrong, "\n".join([f"{len(wrong)} of {len(found)}:", *wrong])
