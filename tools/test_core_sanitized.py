"""Runs tests with the extensions in C built for GCC's sanitizers of addresses and of behaviour.

``python tools/test_core_sanitized.py [NAME…] [PYTEST ARGUMENT…]``: a NAME is ``runtime``, the core
of plugrt's calls, or ``sdk``, that of exports; the default is both, with the tests of `EXTENSIONS`.
The sanitized builds are in ``build/sanitized``, before the installed ones in PYTHONPATH. Leaks are
not looked for (CPython keeps much until the end): the tests count handles and references.
"""

from __future__ import annotations

import os
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
    "tests/pjrt/execution", "tests/pjrt/capi/test_buffer.py", "tests/pjrt/capi/test_lifetimes.py",
    "tests/cpu/execution/test_threads.py", "tests/cpu/execution/test_large_puts.py",
    "tests/cpu/transforms/test_jit_calls.py", "tests/cpu/transforms/test_jit_donation.py",
    "tests/cpu/transforms/test_warm_calls.py", "tests/cpu/client/test_scratch.py",
)  # fmt: skip
"""What has the runtime's core by the API alone; besides it each file that imports the core."""
PRELOADED = ("libasan.so", "libstdc++.so")  # jaxlib throws exceptions: libasan alone ends it


def tests_of_core() -> list[str]:
    """Returns the files of tests that use the core itself; what is in `CALLS` is not repeated."""
    found = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if "\nfrom plugrt.compiled_core import core" in path.read_text(encoding="utf-8")
    ]
    return [path for path in found if not path.startswith(CALLS)]


@dataclass(frozen=True)
class Sanitized:
    """An extension: its package, its sources, where it is in the package, and its tests."""

    package: Path
    sources: Path
    module: str
    tests: tuple[str, ...]

    def build(self) -> None:
        """Copies the package and compiles the extension beside it."""
        target = BUILD / self.package.name
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(self.package, target)
        include = f"-I{sysconfig.get_paths()['include']}"
        sources = sorted(self.sources.glob("*.c"))
        command = ["gcc", *FLAGS, include, *sources, "-o", target / self.module]
        subprocess.run(command, check=True)


EXTENSIONS = {
    "runtime": Sanitized(
        ROOT / "runtime/src/plugrt", ROOT / "runtime/core", "_core.abi3.so",
        (*tests_of_core(), *CALLS),
    ),
    "sdk": Sanitized(
        ROOT / "plugin_sdk/src/plugrt_sdk", ROOT / "plugin_sdk/core", "export/_core.abi3.so",
        (
            "tests/nothing/sdk/test_export.py", "tests/nothing/sdk/test_export_slots.py",
            "tests/nothing/sdk/test_export_handlers.py",
            "tests/nothing/sdk/test_export_stress.py", "tests/nothing/sdk/test_export_under_jax.py",
            "tests/cpu/sdk/test_export.py",
        ),
    ),
}  # fmt: skip
"""By the name on the command line."""


def environment() -> dict[str, str]:
    """Returns the environment in which children, too, load the sanitized extensions."""
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
    there = [name for name, extension in EXTENSIONS.items() if extension.sources.exists()]
    names = [name for name in arguments if name in EXTENSIONS] or there
    given = [argument for argument in arguments if argument not in EXTENSIONS]
    shutil.rmtree(BUILD, ignore_errors=True)
    failed = 0
    for name in names:
        extension = EXTENSIONS[name]
        extension.build()
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly"]
        # Some tests are another target's, and not in `make test`.
        target = {"sdk": "test-sdk", "runtime": "test-lifetimes"}[name]
        done = subprocess.run(
            [*command, *(given or extension.tests)],
            cwd=ROOT, check=False,
            # Where it is not asked for, calls may be Python's, and these tests skipped.
            env={**environment(), "PLUGRT_TEST_TARGET": target, "PLUGRT_CORE": "c"},
        )  # fmt: skip
        failed = failed or done.returncode
    return failed


if __name__ == "__main__":
    sys.exit(main())
