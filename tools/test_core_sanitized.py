"""Runs the tests of exports with the core built for GCC's sanitizers of addresses and of behaviour.

``python tools/test_core_sanitized.py [PYTEST ARGUMENT…]``: the default is every test of exports,
under JAX too. The sanitized build is in ``build/sanitized``, before the installed one in
PYTHONPATH. Leaks are not looked for (CPython keeps much until the end): the tests count handles.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[1]
SDK = ROOT / "plugin_sdk"
BUILD = ROOT / "build/sanitized"
TESTS = (
    "tests/nothing/sdk/test_export.py", "tests/nothing/sdk/test_export_slots.py",
    "tests/nothing/sdk/test_export_handlers.py",
    "tests/nothing/sdk/test_export_stress.py", "tests/nothing/sdk/test_export_under_jax.py",
    "tests/cpu/sdk/test_export.py",
)  # fmt: skip
FLAGS = (
    "-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-fno-omit-frame-pointer", "-fPIC", "-shared",
    "-fvisibility=hidden", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined",
)  # fmt: skip
PRELOADED = ("libasan.so", "libstdc++.so")  # jaxlib throws exceptions: libasan alone ends it


def build() -> None:
    """Copies the SDK's Python and compiles the core beside it."""
    shutil.rmtree(BUILD, ignore_errors=True)
    shutil.copytree(SDK / "src/plugrt_sdk", BUILD / "plugrt_sdk")
    sources = sorted((SDK / "core").glob("*.c"))
    target = BUILD / "plugrt_sdk/export/_core.abi3.so"
    include = f"-I{sysconfig.get_paths()['include']}"
    subprocess.run(["gcc", *FLAGS, include, *sources, "-o", target], check=True)


def environment() -> dict[str, str]:
    """Returns the environment in which children, too, load the sanitized core."""
    where = [
        subprocess.run(
            ["gcc", f"-print-file-name={name}"], check=True, capture_output=True, text=True
        ).stdout.strip()
        for name in PRELOADED
    ]
    return {
        **os.environ,
        "PLUGRT_TEST_TARGET": "test-sdk",  # some of them are not in `make test`
        "PYTHONPATH": str(BUILD),
        "LD_PRELOAD": " ".join(where),
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }


def main() -> int:
    """Returns pytest's exit status."""
    build()
    arguments = sys.argv[1:] or [*TESTS]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment(), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
