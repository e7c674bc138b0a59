"""Runs tests with the C extensions built for GCC's address and undefined behaviour sanitizers.

``python tools/test_core_sanitized.py [NAME…] [PYTEST ARGUMENT…]``: a NAME is one of `RUNS`:
``runtime``, tests of the core of plugrt's calls; ``sdk``, tests of the core of exports; ``suite``,
all tests on both cores. The default is the first two. PYTEST ARGUMENTs replace a run's tests.

The sanitized builds are in ``build/sanitized``, before the installed ones in PYTHONPATH, also for
the children of tests. Leaks are not detected (CPython frees much only at exit): the tests count
handles and references. pytest's summary lists the skipped tests with reasons: tests that cannot run
under sanitizers have the mark `unsanitized` (tests/support/native_core.py), and slow tests belong
to another target.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build/sanitized"
FLAGS = (
    "-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-fno-omit-frame-pointer", "-fPIC", "-shared",
    "-fvisibility=hidden", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined",
    "-DPy_LIMITED_API=0x030B0000",
)  # fmt: skip
CALLS = (
    "tests/pjrt/execution", "tests/unit/capi/library/test_buffer.py",
    "tests/pjrt/capi/test_lifetimes.py",
    "tests/cpu/execution/test_threads.py", "tests/cpu/execution/test_large_puts.py",
    "tests/cpu/transforms/test_jit_calls.py", "tests/cpu/transforms/test_jit_donation.py",
    "tests/cpu/transforms/test_warm_calls.py", "tests/cpu/client/test_scratch.py",
)  # fmt: skip
"""Tests that use the runtime's core through the API; files that import it are added."""
# jaxlib throws exceptions, at which libasan alone ends the process
PRELOADED = ("libasan.so", "libstdc++.so")

USES_CORE = re.compile(
    r"^from (plugrt\.native\.native_core import core|support\.native_core import .*in_c\b)",
    re.MULTILINE | re.IGNORECASE,
)


def tests_of_core() -> list[str]:
    """Returns the test files that import the core, without those that `CALLS` includes."""
    found = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if USES_CORE.search(path.read_text(encoding="utf-8"))
    ]
    return [path for path in found if not path.startswith(CALLS)]


@dataclass(frozen=True)
class Sanitized:
    """An extension: its package, its sources, and where it is in the package."""

    package: Path
    sources: Path
    module: str
    pattern: str = "*.c"

    def build(self) -> None:
        """Copies the package and compiles the extension next to it, once per run."""
        target = BUILD / self.package.name
        if target.exists():
            return
        shutil.copytree(self.package, target)
        include = f"-I{sysconfig.get_paths()['include']}"
        sources = sorted(self.sources.glob(self.pattern))
        flags = [*FLAGS, include, f"-I{self.sources}"]
        command = ["gcc", *flags, *sources, "-o", target / self.module]
        subprocess.run(command, check=True)


@dataclass(frozen=True)
class Run:
    """Tests on sanitized extensions; ``target`` is a session that runs besides `make test`."""

    extensions: tuple[Sanitized, ...]
    tests: tuple[str, ...]
    target: str
    options: tuple[str, ...] = ()


RUNTIME = Sanitized(ROOT / "runtime/src/plugrt", ROOT / "runtime/core", "_core.abi3.so", "**/*.c")
SDK = Sanitized(
    ROOT / "plugin_sdk/src/plugrt_sdk", ROOT / "plugin_sdk/core", "export/_core.abi3.so"
)
RUNS = {
    "runtime": Run((RUNTIME,), (*tests_of_core(), *CALLS), "lifetimes"),
    "sdk": Run(
        (SDK,),
        (
            "tests/nothing/sdk/test_export.py", "tests/unit/sdk/export/test_export_slots.py",
            "tests/unit/sdk/export/test_export_handlers.py",
            "tests/unit/sdk/export/test_export_stress.py",
            "tests/nothing/sdk/test_export_under_jax.py", "tests/cpu/sdk/test_export.py",
        ),
        "sdk",
    ),
    "suite": Run(
        (RUNTIME, SDK), ("tests",), "lifetimes",
        # A test is several times slower; the limit still ends a hanging one.
        ("-n", os.environ.get("WORKERS", "auto"), "--timeout=1800"),
    ),
}  # fmt: skip
"""The runs by their names on the command line."""
DEFAULT = ("runtime", "sdk")


def environment() -> dict[str, str]:
    """Returns an environment in which children also load the sanitized extensions."""
    where = [
        subprocess.run(
            ["gcc", f"-print-file-name={name}"], check=True, capture_output=True, text=True
        ).stdout.strip()
        for name in PRELOADED
    ]
    return {
        **os.environ,
        "PYTHONPATH": str(BUILD),
        "LD_PRELOAD": " ".join(where),
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }


def main() -> int:
    """Returns pytest's exit status, the first that is not 0."""
    arguments = sys.argv[1:]
    names = [name for name in arguments if name in RUNS] or DEFAULT
    given = [argument for argument in arguments if argument not in RUNS]
    shutil.rmtree(BUILD, ignore_errors=True)
    failed = 0
    for run in map(RUNS.__getitem__, names):
        for extension in run.extensions:
            extension.build()
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", *run.options]
        done = subprocess.run(
            [*command, *(given or run.tests)],
            cwd=ROOT, check=False,
            # Without this, calls may run in Python and these tests would be skipped.
            env={**environment(), "PLUGRT_TEST_TARGET": f"{run.target},slow", "PLUGRT_CORE": "c"},
        )  # fmt: skip
        failed = failed or done.returncode
    return failed


if __name__ == "__main__":
    sys.exit(main())
