"""Exports checks of the kit as data, builds the runner in C and runs it on a library."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from support.kit import conform


def export_checks(folder: Path, *arguments: str) -> str:
    """Exports the checks that the arguments of ``plugrt conform`` select; returns its output."""
    invoked = conform("--export", str(folder), *arguments)
    assert invoked.return_value == 0, invoked.output
    return invoked.output


def build_runner(folder: Path) -> Path:
    """Compiles the runner in the folder of an export, with warnings as errors."""
    flags = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Wconversion", "-Werror"]
    command = ["cc", *flags, "-o", "runner", "runner.c", "-ldl", "-lpthread"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return folder / "runner"


def run_checks(runner: Path, library: Path, *arguments: str) -> tuple[int, dict[str, str]]:
    """Returns the exit code of the runner, and the verdict of each check that ran."""
    report = runner.parent / "report.json"
    command = [str(runner), str(library), "--report", str(report), *arguments]
    code = subprocess.run(command, capture_output=True, text=True, timeout=300).returncode
    rows = json.loads(report.read_text())["checks"]
    return code, {row["id"]: row["verdict"] for row in rows if row["verdict"] != "NOT-RUN"}
