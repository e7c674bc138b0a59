"""Compares pmap within other functions with JAX 0.4.20, which had it: ``nox -s old_jax``.

The cases of tools/pmap_cases.py run in two child processes of eight devices: with plugrt here, and
with that JAX in an environment of its own, build/old-jax, made by the first run.

    python tools/test_old_jax.py

Exit code 0 when all results are equal, 1 otherwise. The first run needs the network (a Python
package index), and Python 3.11 or 3.12, for which that jaxlib was built.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT / "tools/pmap_cases.py"
FOLDER = ROOT / "build/old-jax"
PACKAGES = ("jax==0.4.20", "jaxlib==0.4.20", "numpy<2", "scipy<1.13")
UV = [sys.executable, "-m", "uv"]
PLUGRT = {"JAX_NUM_CPU_DEVICES": "8", "JAX_PLATFORMS": "cpu"}
JAX = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}


def make_environment() -> Path:
    """Returns the interpreter that has the old JAX."""
    python = FOLDER / "bin/python"
    if not python.exists():
        subprocess.run([*UV, "venv", "--quiet", "--python", ">=3.11,<3.13", FOLDER], check=True)
    install = [*UV, "pip", "install", "--quiet", "--python", python, *PACKAGES]
    subprocess.run(install, check=True)
    return python


def compute(python: str | Path, library: str, added: dict[str, str], file: Path) -> list[object]:
    """Returns the results of all cases with a library, in a child process."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "XLA_"))}
    command = [python, CASES, library, file]
    subprocess.run(command, check=True, env={**environment, **added}, cwd=file.parent)
    with np.load(file) as found:
        return [found[name] for name in found.files]


def main() -> int:
    """Compares, prints what differs, and returns the exit code."""
    python = make_environment()
    with tempfile.TemporaryDirectory() as folder:
        ours = compute(sys.executable, "plugrt", PLUGRT, Path(folder, "ours.npz"))
        theirs = compute(python, "jax", JAX, Path(folder, "theirs.npz"))
    differing = len(ours) != len(theirs)
    for number, (mine, other) in enumerate(zip(ours, theirs, strict=False)):
        try:
            np.testing.assert_allclose(mine, other, rtol=1e-6, strict=True)
        except AssertionError as error:
            differing = True
            print(f"result {number}: {error}")
    print(f"{len(ours)} results of plugrt, {len(theirs)} of JAX 0.4.20"
          f"{': they differ' if differing else ', all equal'}")  # fmt: skip
    return int(differing)


if __name__ == "__main__":
    sys.exit(main())
