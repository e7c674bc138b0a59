"""Runs the tests that need vendors' libraries (libtpu, CUDA, CPUs), in their environment.

The environment is ``.venv-vendors``, made from the lock file's group ``vendors``, separate from
``.venv``: packages installed there would change the results of the other tests. Arguments go to
pytest.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
VENV = ROOT / ".venv-vendors"
QUIET = {
    "TPU_SKIP_MDS_QUERY": "1",  # prevents queries of a metadata server
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_LOG_DIR": "disabled",
    "TPU_MIN_LOG_LEVEL": "3",  # otherwise libtpu writes log files
    "TPU_STDERR_LOG_LEVEL": "3",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}
TARGET = {"PLUGRT_TEST_TARGET": "vendors"}
"""In CI a missing library is a failure in this session, and a reason to skip in others."""


def make_environment() -> Path:
    """Makes or updates the environment; returns its Python."""
    environment = {**os.environ, "UV_PROJECT_ENVIRONMENT": str(VENV)}
    uv = [str(ROOT / ".venv/bin/uv"), "sync", "--locked", "--quiet", "--group", "vendors"]
    subprocess.run([*uv, "--python", sys.executable], cwd=ROOT, env=environment, check=True)
    return VENV / "bin/python"


def main() -> int:
    """Returns pytest's exit code; no test collected counts as a failure."""
    tests = [str(make_environment()), "-m", "pytest", "tests/vendors", "-q", "-p", "no:randomly"]
    return subprocess.run(
        [*tests, *sys.argv[1:]], cwd=ROOT, env={**os.environ, **QUIET, **TARGET}, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
