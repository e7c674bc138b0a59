"""Environments like a user's: dependencies from the lock, ours from wheels.

Packages that `make` installed are in uv's cache and are not fetched; others are downloaded.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from support import children
from support.markdown import ROOT, load_script
from support.requirements import cannot, needs

RELEASE = load_script("tools/release.py")
UV = Path(sys.executable).parent / "uv"
needs_uv = needs(UV.exists(), f"{UV}, which `make test` installs")
UNSET = "unset ${!JAX_@} ${!PLUGRT_@} ${!PJRT_@} ${!XLA_@}"
SAMPLED_KIT = {"PYTEST_ADDOPTS": "-k 'not test_check or client or buffers or programs or handles'"}
"""Selects all tests of a package but, of the conformance kit, some chapters."""
_LEFT_OUT = ("PYTHONPATH", "VIRTUAL_ENV")
_OTHER_MACHINES = r"(?:Skipping link: none of the wheel's tags|Link requires a different Python).*"
"""pip's message for a wheel of another Python or platform."""
_UNREACHABLE = ("Failed to download", "Failed to fetch")


def attempt(
    *command: object, cwd: Path = ROOT, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a command as a user's shell would, outside this environment."""
    inherited = {k: v for k, v in os.environ.items() if k not in _LEFT_OUT}
    return children.run(command, cwd=cwd, env={**inherited, **(env or {})}, timeout=560)


def run(
    *command: object, cwd: Path = ROOT, env: Mapping[str, str] | None = None, code: int = 0
) -> subprocess.CompletedProcess[str]:
    """Runs a command that must end with that exit code."""
    done = attempt(*command, cwd=cwd, env=env)
    assert done.returncode == code, f"{command} ends with {done.returncode}:\n{done}"
    return done


def environment(group: str, place: Path, *wheels: Path) -> Path:
    """Makes an environment of a group of the lock and some wheels, and returns its Python.

    Skips the test if a package is neither in uv's cache nor downloadable.
    """
    done = attempt(
        UV, "sync", "--frozen", "--quiet", "--no-install-workspace", "--no-dev",
        "--only-group", group, "--python", sys.executable,
        env={"UV_PROJECT_ENVIRONMENT": str(place)},
    )  # fmt: skip
    unreachable_is_skipped(done)
    assert done.returncode == 0, done
    python = place / "bin/python"
    run(UV, "pip", "install", "--quiet", "--offline", "--no-deps", "--python", python, *wheels)
    return python


def build_wheels(folder: Path) -> list[Path]:
    """Puts the wheels of all distributions of ours into ``folder``, and returns them."""
    for project in RELEASE.PROJECTS:
        RELEASE.put_wheel(project, folder / "sources", folder / "wheels")
    return sorted((folder / "wheels").glob("*.whl"))


def environment_above(base: Path, place: Path, *wheels: Path) -> Path:
    """Makes an environment of wheels above another, whose packages it sees; returns its Python.

    ``base`` is the other's Python. The wheels' dependencies are not installed.
    """
    run(UV, "venv", "--quiet", "--python", base, place)
    python = place / "bin/python"
    add_packages(python, folder_of_packages(base))
    run(UV, "pip", "install", "--quiet", "--no-deps", "--no-cache", "--python", python, *wheels)
    return python


def add_packages(python: Path, folder: Path) -> None:
    """Adds a folder of packages to an environment's path."""
    line = f"import site; site.addsitedir({str(folder)!r})\n"
    with (folder_of_packages(python) / "added.pth").open("a") as file:
        file.write(line)


def folder_of_packages(python: Path) -> Path:
    """Returns the site-packages folder of an environment."""
    [folder] = python.parents[1].glob("lib/python3*/site-packages")
    return folder


def unreachable_is_skipped(done: subprocess.CompletedProcess[str]) -> None:
    """Skips the test if a command failed because packages could not be downloaded."""
    if done.returncode and any(words in done.stderr for words in _UNREACHABLE):
        cannot(f"packages cannot be had here: {done.stderr.strip()}")


def download_wheel(package: str, version: str, folder: Path, *options: str) -> Path:
    """Downloads a wheel of this version with pip and these options; returns its file.

    Skips the test only if the index has the version for another Python or platform. Any other
    error, such as an index that cannot be reached or no longer has the version, is a failure: pip
    prints "No matching distribution" there, too.
    """
    what = f"{package}=={version}"
    command = [sys.executable, "-m", "pip", "download", "-vv", "--no-deps", *options]
    done = attempt(*command, "--only-binary=:all:", "--dest", folder, what)
    if done.returncode:
        skipped = re.findall(_OTHER_MACHINES, done.stdout)
        start = f"/{package}-{version}-".replace("_", "-").lower()
        fits = [line for line in skipped if start in line.replace("_", "-").lower()]
        only = f"No matching distribution found for {what}" in done.stderr and fits
        assert only, f"{what} could not be downloaded:\n{done.stderr}"
        pytest.skip(f"{what} is not there for this machine: {fits[0]}")
    [file] = folder.glob("*.whl")
    return file


def is_gradient(printed: str) -> bool:
    """Whether the numbers that JAX printed are the gradient of ``sum(sin(x) ** 2)``."""
    found = [float(word) for word in re.findall(r"-?\d+\.\d*", printed)]
    return bool(np.allclose(found, np.sin(2 * np.arange(4.0)), rtol=1e-5))


def uv_as_pip(folder: Path, wheels: Path) -> dict[str, str]:
    """Returns the environment in which ``make-venv`` makes one whose ``pip`` is uv's.

    Packages of ours come from the folder ``wheels``, others from uv's cache, or its index.
    """
    tools = folder.parent / "tools"
    if not tools.exists():
        tools.mkdir()
        script = f"""#!/bin/sh
set -e
{UV} venv --quiet --python {sys.executable} "$1"
printf '#!/bin/sh\\nexec {UV} pip "$@" --python %s/bin/python\\n' "$PWD/$1" > "$1/bin/pip"
chmod +x "$1/bin/pip"
"""
        (tools / "make-venv").write_text(script)
        (tools / "make-venv").chmod(0o755)
    return {
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "UV_FIND_LINKS": str(wheels),
        "UV_NO_CONFIG": "1",
    }
