"""Runs JAX's own tests on the exported NumPy backend, and with plugrt in place of JAX.

JAX's test files of the installed release, unmodified, run on JAX's CPU and on the platform
``numpy``, with 8 devices each. Of the tests that pass on the CPU 95 % must pass there, and each
other one must have its reason in ``tools/jax_failures.toml``; an entry for a test that does not
fail is an error too.

    python tools/test_jax.py [--in-place] [FILE ...]

With ``--in-place`` the files import plugrt in place of JAX (`jax_suite/in_jax_place.py`). Rules in
``tools/jax_absences.toml`` state which tests do not apply, such as tests of derivatives. They are
counted separately. ``tools/jax_in_place.toml`` has the reasons of tests that apply and fail.

A FILE is a test file of JAX without its ending, such as ``pmap_test``. The sources are read from
the repository that JAX_SOURCE names, a checkout or a copy of its ``tests`` and ``pyproject.toml``,
or downloaded from GitHub into the user's cache (2 MB of 40 are kept), with absl-py, which only
JAX's tests need. A run needs half an hour on two cores; reports and logs are kept in
``build/test-jax``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools/jax_suite"))

from jax_outcomes import (  # noqa: E402
    Comparison,
    compare,
    find_absences,
    read_messages,
    read_reasons,
    read_report,
)

RELEASE = f"jax-v{version('jax')}"
ARCHIVE = f"https://github.com/jax-ml/jax/archive/refs/tags/{RELEASE}.tar.gz"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "plugrt/jax-tests"
OUTPUT = ROOT / "build/test-jax"
REASONS = ROOT / "tools/jax_failures.toml"
IN_PLACE_REASONS = ROOT / "tools/jax_in_place.toml"
ABSENCES = ROOT / "tools/jax_absences.toml"
FILES = (
    *("pmap_test", "random_test", "lax_control_flow_test", "api_test", "lax_test"),
    *("python_callback_test", "array_test", "layout_test", "pjit_test", "shard_map_test"),
    "linalg_test",
)
SAMPLED = {"linalg_test": 10, "pjit_test": 6, "shard_map_test": 3}
"""For files that run over 10 minutes on the NumPy backend: one in that many tests runs there."""
IN_PLACE = (
    *("pjit_test", "shard_map_test", "layout_test", "array_test", "multi_device_test", "pmap_test"),
    *("aot_test", "debug_nans_test", "python_callback_test", "random_test"),
    *("lax_control_flow_test", "api_test"),
)
"""The files that run with plugrt in JAX's place."""
NEEDED_SHARE = 0.95
PLATFORMS = {
    "cpu": {
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
    },
    "numpy": {
        "JAX_PLATFORMS": "numpy,cpu",  # the first is the default; some tests put arrays on the CPU
        "JAX_PJRT_CLIENT_CREATE_OPTIONS": "num_devices:8",
        "XLA_FLAGS": "",
    },
    "plugrt": {
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
        "JAX_ENABLE_X64": "0",
        "PYTEST_PLUGINS": "in_jax_place",
    },
}
"""For each platform the environment that gives it 8 devices."""
IS_CPU = "import jax; from jax._src import test_util; jax.config.update('jax_test_dut', 'cpu')\n"
"""A pytest plugin: JAX's tests treat the device as a CPU. Else those for CPUs skip.
"""


def find_sources() -> Path:
    """Returns a folder with JAX's ``tests``, downloaded if necessary."""
    if given := os.environ.get("JAX_SOURCE"):
        if not (Path(given) / "tests/lax_test.py").is_file():
            sys.exit(f"JAX_SOURCE={given}: there is no tests/lax_test.py in it")
        return Path(given)
    folder = CACHE / RELEASE
    if not (folder / "tests/lax_test.py").is_file():
        download(folder)
    return folder


def download(folder: Path) -> None:
    """Makes a folder with JAX's tests atomically."""
    print(f"downloading {ARCHIVE}", flush=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=folder.parent) as made,
        urllib.request.urlopen(ARCHIVE) as reply,
        tarfile.open(fileobj=reply, mode="r|gz") as archive,
    ):
        for member in archive:
            _, _, member.name = member.name.partition("/")
            if member.name.startswith("tests/") or member.name == "pyproject.toml":
                archive.extract(member, made, filter="data")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(made, folder)


def install_absl() -> Path:
    """Returns a folder with absl-py and the plugin `IS_CPU`, for PYTHONPATH."""
    folder = CACHE / "packages"
    if not (folder / "absl").is_dir():
        install = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--target"]
        subprocess.run([*install, str(folder), "absl-py"], check=True)
    (folder / "device_under_test.py").write_text(IS_CPU, encoding="utf-8")
    return folder


def run_file(name: str, platform: str, sources: Path) -> dict[str, str]:
    """Runs one of JAX's test files on a platform, and returns the outcomes of its tests.

    pytest-xdist runs it in several processes, so that a crash ends one test only.
    """
    report = OUTPUT / platform / f"{name}.xml"
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:randomly"),
        *(() if platform == "plugrt" else ("-p", "device_under_test", "-p", "sampled_tests")),
        *("-p", "no:cacheprovider", "-o", "addopts=", "-n", os.environ.get("WORKERS", "2")),
        *("--tb=short", "--timeout=900", f"--junitxml={report}", f"tests/{name}.py"),
    ]
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("JAX_")},
        **PLATFORMS[platform],
        "JAX_NUM_GENERATED_CASES": "10",
        "SAMPLE": str(SAMPLED.get(name, 1)),
        "PYTHONPATH": f"{install_absl()}:{ROOT / 'tools/jax_suite'}",
    }
    with report.with_suffix(".log").open("w") as log:
        subprocess.run(command, cwd=sources, env=environment, stdout=log, stderr=log, check=False)
    if not report.is_file():
        sys.exit(f"{name} did not run on {platform}: see {report.with_suffix('.log')}")
    return read_report(report)


def describe(name: str, found: Comparison) -> str:
    """Returns a line on a file, and one for each test with an unexpected outcome."""
    count = len(found.passed) + len(found.failed)
    lines = [f"{name:24} {len(found.passed):5} of {count:5} pass ({found.share:.1%})"]
    lines += [f"  FAILED, and no reason is known: {test}" for test in found.new]
    lines += [f"  does not fail any more, strike it out: {test}" for test in found.stale]
    return "\n".join(lines)


def run_in_place(names: Sequence[str]) -> int:
    """Runs files with plugrt in place of JAX, and prints how many of the applicable tests pass.

    Returns 1 if a test fails without a known reason, or passes though there is one.
    """
    sources, reasons, good = find_sources(), read_reasons(IN_PLACE_REASONS), True
    for name in names or IN_PLACE:
        ours = run_file(name, "plugrt", sources)
        expected = {test for test, end in ours.items() if end != "skipped"}
        messages = read_messages(OUTPUT / "plugrt" / f"{name}.xml")
        absent = find_absences(messages, ABSENCES)
        applicable = expected - absent.keys()
        passed = {test for test in applicable if ours[test] == "passed"}
        print(
            f"{name:24} {len(passed):5} of {len(applicable):5} that apply pass "
            f"({len(passed) / max(1, len(applicable)):.1%}); "
            f"{len(expected) - len(applicable)} do not apply",
            flush=True,
        )
        for test in sorted(applicable - passed):
            good &= test in reasons
            print(f"  FAILED: {test}: {reasons.get(test, 'no reason is known')}", flush=True)
        for test in sorted(reasons.keys() & passed):
            good = False
            print(f"  does not fail any more, strike it out: {test}", flush=True)
    return 0 if good else 1


def main(names: list[str]) -> int:
    """Runs the named files or all, and prints the results."""
    if "--in-place" in names:
        return run_in_place([name for name in names if name != "--in-place"])
    sources, reasons = find_sources(), read_reasons(REASONS)
    good, passed, count = True, 0, 0
    for name in names or FILES:
        cpu, numpy = (run_file(name, platform, sources) for platform in ("cpu", "numpy"))
        found = compare(cpu, numpy, reasons)
        print(describe(name, found), flush=True)
        good &= found.is_as_known
        passed += len(found.passed)
        count += len(found.passed) + len(found.failed)
    print(
        f"{RELEASE}: {passed} of {count} pass ({passed / count:.1%}, {NEEDED_SHARE:.0%} are needed)"
    )
    print(f"logs and reports are in {OUTPUT}")
    return 0 if good and passed >= NEEDED_SHARE * count else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
