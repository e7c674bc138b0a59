"""Runs the tests on the newest release of each jaxlib minor from 0.9 on: ``nox -s jaxlib``.

Each minor that installs on this Python gets a temporary environment with our packages and the JAX
of the same release, and runs tests/cpu, tests/nothing and tests/unit. Newer ones, which need a
newer Python, are downloaded and their libraries searched for the private names that the cpu plugin
uses.

    python tools/test_jaxlib.py [VERSION ...] [-- PYTEST_ARGUMENT ...]

A VERSION is a minor (0.9), or its newest release in full. Exit code 0 when all of them pass, 1
otherwise. Needs the network (a Python package index).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.jaxlib_versions import (  # noqa: E402
    names_missing_in,
    newest_of_each_minor,
    stands_for,
    version_key,
    versions_in,
)

NEWER_PYTHON = "3.12"
UV = [sys.executable, "-m", "uv"]
PACKAGES = ("runtime[trace]", "plugins/cpu", "plugins/cuda", "plugins/numpy", "plugins/tpu",
            "plugin_sdk")  # fmt: skip
TEST_TOOLS = (
    *("pytest", "pytest-timeout", "pytest-randomly", "pytest-xdist", "hypothesis", "uv"),
    *("setuptools>=77", "pip", "flatbuffers"),  # flatbuffers is what jax.export writes with
)
TESTS = ("tests/cpu", "tests/nothing", "tests/unit")


def available(*options: str) -> list[str]:
    """Returns the newest release of each minor that pip offers with these options."""
    command = [sys.executable, "-m", "pip", "index", "versions", "jaxlib", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return newest_of_each_minor(versions_in(done.stdout))


def run_tests(version: str, folder: Path, arguments: list[str]) -> bool:
    """Returns whether the tests pass with that jaxlib, in an environment made in ``folder``."""
    python = folder / "bin" / "python"
    subprocess.run([*UV, "venv", "--quiet", "--python", sys.executable, str(folder)], check=True)
    editable = [part for package in PACKAGES for part in ("--editable", str(ROOT / package))]
    install = [*UV, "pip", "install", "--quiet", "--python", str(python), *editable, *TEST_TOOLS]
    release = ".".join(version.split(".")[:3])  # a fourth number is a rebuild of jaxlib alone
    subprocess.run([*install, f"jaxlib=={version}", f"jax=={release}"], check=True, cwd=ROOT)
    pytest = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS, *arguments]
    return subprocess.run(pytest, check=False, cwd=ROOT).returncode == 0


def read_names(version: str, folder: Path) -> bool:
    """Returns whether the wheel for a newer Python holds every private name that we use."""
    from plugrt_cpu.jaxlib_private_api import PRIVATE_NAMES

    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--dest",
        str(folder),
    ]
    target = ["--only-binary=:all:", f"--python-version={NEWER_PYTHON}", f"jaxlib=={version}"]
    subprocess.run([*command, *target], check=True)
    (wheel,) = folder.glob("*.whl")
    missing = names_missing_in(wheel, PRIVATE_NAMES)
    print(f"jaxlib {version}: {len(PRIVATE_NAMES) - len(missing)} of {len(PRIVATE_NAMES)} names")
    for name in missing:
        print(f"jaxlib {version} lacks {name}")
    return not missing


def main(arguments: list[str]) -> int:
    """Tests the given versions, or all; prints a line for each."""
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    wanted, rest = arguments[:cut], arguments[cut + 1 :]
    here = available()
    elsewhere = available("--only-binary=:all:", f"--python-version={NEWER_PYTHON}")
    newer = [v for v in elsewhere if version_key(v)[:2] not in {version_key(x)[:2] for x in here}]
    known = here + newer
    if unknown := [w for w in wanted if not any(stands_for(w, v) for v in known)]:
        print(f"no jaxlib {', '.join(unknown)} here; the newest of each minor: {', '.join(known)}")
        return 1
    results: dict[str, bool] = {}
    for version in known:
        if wanted and not any(stands_for(w, version) for w in wanted):
            continue
        with tempfile.TemporaryDirectory() as folder:
            if version in here:
                results[version] = run_tests(version, Path(folder), rest)
            else:
                results[version] = read_names(version, Path(folder))
    for version, passed in results.items():
        how = "tests" if version in here else f"names only (needs Python {NEWER_PYTHON})"
        print(f"jaxlib {version:9} {'passed' if passed else 'FAILED'}  {how}")
    return 0 if results and all(results.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
