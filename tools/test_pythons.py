"""Tests the compiled core on each installed Python, from one set of wheels: ``nox -s pythons``.

The wheels are built once, by this Python, for ``cp311-abi3``. Each Python gets a temporary
environment of the lock file's packages and these wheels, and runs `TESTS` with ``PLUGRT_CORE=c``.

    python tools/test_pythons.py [INTERPRETER ...] [-- PYTEST_ARGUMENT ...]

The default interpreters are those that uv and pyenv have from 3.11 on, one of each minor version;
those without the GIL are omitted, since they have no core. Exit code 0 when all of them pass, 1
otherwise. Packages that are not in uv's cache are downloaded.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from release import ABI, IN_C, PROJECTS, build  # noqa: E402

UV = [sys.executable, "-m", "uv"]
FIRST = (3, 11)
TESTS = (
    "tests/unit/native/test_native_core.py", "tests/unit/core/library/test_calls.py",
    "tests/unit/core/test_objects.py", "tests/unit/core/test_launches.py",
    "tests/unit/core/test_last_calls.py", "tests/unit/core/test_locks.py",
    "tests/cpu/client/test_steps.py", "tests/unit/core/test_function_reads.py",
    "tests/pjrt/execution", "tests/cpu/transforms/test_jit_calls.py",
    "tests/cpu/transforms/test_jit_donation.py", "tests/cpu/transforms/test_warm_calls.py",
)  # fmt: skip
SAYS_WHERE = "import plugrt._core; print(plugrt._core.__file__)"


def find_interpreters() -> list[Path]:
    """Returns the newest interpreter of each minor from 3.11 on, oldest first."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    folders = [*map(str, pyenv.glob("versions/3.*/bin")), os.environ["PATH"]]
    command = [*UV, "python", "list", "--only-installed", "--output-format", "json"]
    done = subprocess.run(
        command, env={**os.environ, "PATH": os.pathsep.join(folders)},
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    newest: dict[tuple[int, ...], tuple[tuple[int, ...], Path]] = {}
    for found in json.loads(done.stdout):
        version = tuple(found["version_parts"][part] for part in ("major", "minor", "patch"))
        if found["implementation"] != "cpython" or found["variant"] != "default":
            continue
        if version >= FIRST and version > newest.get(version[:2], ((), Path()))[0]:
            newest[version[:2]] = (version, Path(found["path"]))
    return [path for _, path in sorted(newest.values())]


def make_environment(interpreter: Path, folder: Path, wheels: list[Path]) -> Path:
    """Returns the Python of a new environment with the lock's packages and the wheels."""
    environ = {**os.environ, "UV_PROJECT_ENVIRONMENT": str(folder)}
    sync = ["sync", "--frozen", "--quiet", "--no-install-workspace", "--python", str(interpreter)]
    subprocess.run([*UV, *sync], check=True, cwd=ROOT, env=environ)
    python = folder / "bin/python"
    install = ["pip", "install", "--quiet", "--no-deps", "--python", str(python)]
    subprocess.run([*UV, *install, *map(str, wheels)], check=True, cwd=ROOT)
    return python


def run_tests(python: Path, folder: Path, arguments: list[str]) -> bool:
    """Returns whether the tests pass there with the wheel's core."""
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"PLUGRT_CORE": "c"}
    where = subprocess.run(
        [str(python), "-c", SAYS_WHERE], check=True, env=environ, capture_output=True, text=True
    ).stdout
    assert where.startswith(str(folder)), f"the core is {where}, and not that of the wheel"
    pytest = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", *(arguments or TESTS)]
    return subprocess.run(pytest, check=False, cwd=ROOT, env=environ).returncode == 0


def main(arguments: list[str]) -> int:
    """Tests the given interpreters, or all; prints a line for each."""
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    interpreters = [Path(name) for name in arguments[:cut]] or find_interpreters()
    results: dict[Path, bool] = {}
    with tempfile.TemporaryDirectory(prefix="plugrt-pythons-") as name:
        place = Path(name)
        for project in PROJECTS:
            build(project, place / "sources", place / "wheels", "--wheel")
        wheels = sorted((place / "wheels").glob("*.whl"))
        assert sum(f"-{ABI}-" in wheel.name for wheel in wheels) == len(IN_C), wheels
        for number, interpreter in enumerate(interpreters):
            folder = place / f"python{number}"
            python = make_environment(interpreter, folder, wheels)
            results[interpreter] = run_tests(python, folder, arguments[cut + 1 :])
    for interpreter, passed in results.items():
        print(f"{'passed' if passed else 'FAILED'}  {interpreter}")
    return 0 if results and all(results.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
