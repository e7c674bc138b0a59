"""Environments like a user's: dependencies from the lock, ours from wheels, nothing fetched."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from support.markdown import ROOT

UV = Path(sys.executable).parent / "uv"
_LEFT_OUT = ("PYTHONPATH", "VIRTUAL_ENV")


def run(
    *command: object, cwd: Path = ROOT, env: Mapping[str, str] | None = None, code: int = 0
) -> subprocess.CompletedProcess[str]:
    """Runs a command that must end with that exit code."""
    inherited = {k: v for k, v in os.environ.items() if k not in _LEFT_OUT}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd, env={**inherited, **(env or {})}, capture_output=True, text=True, timeout=280,
        check=False,
    )  # fmt: skip
    assert done.returncode == code, f"{command} ends with {done.returncode}:\n{done}"
    return done


def build_wheel(project: str, sources: Path, wheels: Path) -> None:
    """Builds the wheel of a project from a copy in ``sources``, so that the tree stays as it is."""
    listed = run("git", "ls-files", "-co", "--exclude-standard", project).stdout.splitlines()
    for name in filter(lambda n: (ROOT / n).is_file(), listed):
        copy = sources / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes((ROOT / name).read_bytes())
    # No build isolation: setuptools is here, and nothing need be fetched.
    run(UV, "build", "--wheel", "--no-build-isolation", "--offline", "--python",
        sys.executable, "--out-dir", wheels, sources / project)  # fmt: skip


def environment(group: str, place: Path, *wheels: Path) -> Path:
    """Makes an environment of a group of the lock and some wheels, and returns its Python."""
    run(
        UV, "sync", "--frozen", "--offline", "--quiet", "--no-install-workspace", "--no-dev",
        "--only-group", group, "--python", sys.executable,
        env={"UV_PROJECT_ENVIRONMENT": str(place)},
    )  # fmt: skip
    python = place / "bin/python"
    run(UV, "pip", "install", "--quiet", "--offline", "--no-deps", "--python", python, *wheels)
    return python
