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

import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FIRST_MINOR = (0, 9)
NEWER_PYTHON = "3.12"
UV = [sys.executable, "-m", "uv"]
PACKAGES = ("runtime[trace]", "plugins/cpu", "plugins/cuda", "plugins/numpy", "plugins/remote",
            "plugins/tpu", "plugin_sdk")  # fmt: skip
TEST_TOOLS = (
    *("pytest", "pytest-timeout", "pytest-randomly", "pytest-xdist", "hypothesis", "uv"),
    *("setuptools>=77", "pip", "flatbuffers"),  # jax.export writes with flatbuffers
)
TESTS = ("tests/cpu", "tests/nothing", "tests/unit")


def version_key(version: str) -> tuple[int, ...]:
    """Returns the sort key of a version, which must consist of numbers and dots."""
    return tuple(map(int, version.split(".")))


def versions_in(listing: str) -> list[str]:
    """Returns the releases that ``pip index versions`` printed, oldest first."""
    line = next((x for x in listing.splitlines() if x.startswith("Available versions:")), "")
    found = re.findall(r"\d+(?:\.\d+)+(?![\w.])", line)
    return sorted(found, key=version_key)


def newest_of_each_minor(versions: Iterable[str]) -> list[str]:
    """Returns the newest release of each minor that is supported, oldest minor first."""
    newest: dict[tuple[int, ...], str] = {}
    for version in sorted(versions, key=version_key):
        minor = version_key(version)[:2]
        if minor >= FIRST_MINOR:
            newest[minor] = version
    return [newest[minor] for minor in sorted(newest)]


def stands_for(wanted: str, version: str) -> bool:
    """Returns whether a release is the requested one, in full or by its first numbers."""
    return f"{version}.".startswith(f"{wanted}.")


def names_missing_in(wheel: Path, names: Iterable[str]) -> list[str]:
    """Returns the dotted names with a part that no library of a wheel contains.

    A name that a nanobind module defines is a string in its library. Its presence does not prove
    that its meaning is the same; its absence proves that it was removed.
    """
    wanted = {part: name for name in names for part in name.split(".")}
    missing = set(wanted)
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.namelist():
            if not missing:
                break
            if member.endswith((".so", ".pyd", ".dll", ".dylib", ".py", ".pyi")):
                text = archive.read(member) + member.encode()
                missing = {part for part in missing if part.encode() not in text}
    return sorted(name for name in names if missing & set(name.split(".")))


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
    """Returns whether the wheel for a newer Python has every private name that plugrt uses."""
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
