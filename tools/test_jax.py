"""Runs JAX's own tests on the exported NumPy backend, and with plugrt in place of JAX.

JAX's test files of the installed release, unmodified, run on JAX's CPU and on the platform
``numpy``, with 8 devices each. Of the tests that pass on the CPU 95 % must pass there, and each
other one must have its reason in ``tools/jax_failures.toml``; an entry for a test that does not
fail is an error too.

    python tools/test_jax.py [--in-place | --served] [FILE ...]

With ``--in-place`` the files import plugrt in place of JAX (`jax_suite/in_jax_place.py`). Rules in
``tools/jax_absences.toml`` state which tests do not apply, such as tests of derivatives. They are
counted separately. ``tools/jax_in_place.toml`` has the reasons of tests that apply and fail.

With ``--served`` samples of files run on the exported cpu plugin, and on a device server of it
(``plugrt serve``). ``tools/jax_served.toml`` has the reasons.

A FILE is a test file of JAX without its ending, such as ``pmap_test``. The sources are read from
the repository that JAX_SOURCE names, a checkout or a copy of its ``tests`` and ``pyproject.toml``,
or downloaded from GitHub into the user's cache (2 MB of 40 are kept), with absl-py, which only
JAX's tests need. A run needs half an hour on two cores; reports and logs are kept in
``build/test-jax``.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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
SERVED_REASONS = ROOT / "tools/jax_served.toml"
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
SERVED = {
    "api_test": 32,
    "pmap_test": 8,
    "lax_control_flow_test": 48,
    "python_callback_test": 1,
}
"""The files that run on the cpu plugin, exported and served: one in that many tests."""
ADDRESS = f"unix:{tempfile.gettempdir()}/plugrt-test-jax-{os.getpid()}"
NEEDED_SHARE = 0.95
PLATFORMS = {
    "cpu": {
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
    },
    "numpy": {
        "JAX_PLATFORMS": "numpy,cpu",  # numpy is the default; some tests use the CPU
        "JAX_PJRT_CLIENT_CREATE_OPTIONS": "num_devices:8",
        "XLA_FLAGS": "",
    },
    "exported": {
        "JAX_PLATFORMS": "exported,cpu",
        "PYTEST_PLUGINS": "exported_cpu",
        "XLA_FLAGS": "",
    },
    "remote": {
        "JAX_PLATFORMS": "remote,cpu",
        "PLUGRT_REMOTE": ADDRESS,
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

UNDER_JAX = ("-p", "device_under_test", "-p", "sampled_tests", "--tb=native")
"""pytest's other tracebacks parse source, which ends a run of CPython 3.11.7 where another thread
parses too (python/cpython#106905): a callback that fails after the test did."""


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


@contextmanager
def serving() -> Iterator[None]:
    """Serves 8 devices of the cpu plugin at `ADDRESS`."""
    serve = [sys.executable, "-m", "plugrt", "serve", "--platform", "cpu", "--bind", ADDRESS]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "8"}
    OUTPUT.mkdir(parents=True, exist_ok=True)
    with (
        (OUTPUT / "server.log").open("wb") as log,
        subprocess.Popen(serve, env=environment, stdout=subprocess.PIPE, stderr=log) as server,
    ):
        assert server.stdout is not None
        try:
            if not server.stdout.readline():
                sys.exit("the device server did not start")
            yield
        finally:
            server.terminate()


def run_file(name: str, platform: str, sources: Path, share: int = 1) -> dict[str, str]:
    """Runs one of JAX's test files on a platform, and returns the outcomes of its tests.

    One in ``share`` of the tests runs. pytest-xdist runs them in several processes, so that a crash
    ends one test only.
    """
    report = OUTPUT / platform / f"{name}.xml"
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:randomly"),
        *(("--tb=short",) if platform == "plugrt" else UNDER_JAX),
        *("-p", "no:cacheprovider", "-o", "addopts=", "-n", os.environ.get("WORKERS", "2")),
        *("--timeout=900", f"--junitxml={report}", f"tests/{name}.py"),
    ]
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("JAX_")},
        **PLATFORMS[platform],
        "JAX_NUM_GENERATED_CASES": "10",
        "SAMPLE": str(share),
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
    lines = [f"{name:34} {len(found.passed):5} of {count:5} pass ({found.share:.1%})"]
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


def run_exported(shares: Mapping[str, int], platforms: Sequence[str], reasons: Path) -> int:
    """Runs a share of each file's tests on JAX's CPU and on platforms, and prints the results.

    Returns 1 if the tests that fail on a platform are others than those with a reason, or if too
    many fail.
    """
    sources, good, passed, count = find_sources(), True, 0, 0
    for name, share in shares.items():
        cpu = run_file(name, "cpu", sources, share)
        for platform in platforms:
            known = read_reasons(reasons, platform)
            found = compare(cpu, run_file(name, platform, sources, share), known)
            print(describe(f"{name} on {platform}", found), flush=True)
            good &= found.is_as_known
            passed += len(found.passed)
            count += len(found.passed) + len(found.failed)
    print(
        f"{RELEASE}: {passed} of {count} pass ({passed / count:.1%}, {NEEDED_SHARE:.0%} are needed)"
    )
    print(f"logs and reports are in {OUTPUT}")
    return 0 if good and passed >= NEEDED_SHARE * count else 1


def main() -> int:
    """Runs the named files or all, and prints the results."""
    parser = argparse.ArgumentParser(description="Runs JAX's tests with plugrt.")
    parser.add_argument("files", nargs="*", metavar="FILE", help="such as pmap_test")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--in-place", action="store_true", help="plugrt in place of JAX")
    kind.add_argument("--served", action="store_true", help="the cpu plugin, exported and served")
    given = parser.parse_args()
    if given.in_place:
        return run_in_place(given.files)
    if given.served:
        shares = {name: SERVED.get(name, 1) for name in given.files or SERVED}
        with serving():
            return run_exported(shares, ("exported", "remote"), SERVED_REASONS)
    shares = {name: SAMPLED.get(name, 1) for name in given.files or FILES}
    return run_exported(shares, ("numpy",), REASONS)


if __name__ == "__main__":
    sys.exit(main())
