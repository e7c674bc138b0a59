"""Runs the test suite of the Python array API standard: ``nox -s array_api``.

    ARRAY_API_TESTS=path/to/array-api-tests python tools/test_array_api.py [FILE ...]

The path is a checkout of https://github.com/data-apis/array-api-tests with its submodule, after
``pip install -r requirements.txt``. The suite runs on the backends cpu and numpy, with all 64-bit
dtypes and 5 random examples a test (``--max-examples``). Both runs together need four minutes.
`tools/array_api_failures.toml` must have a reason for each failing test, and no reason for a test
that passes or does not exist; a test that fails for some examples only may pass. A FILE is one of
the suite's, such as ``test_linalg``; reasons for other files are then not checked.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as xml
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
REASONS = ROOT / "tools/array_api_failures.toml"
PLATFORMS = ("cpu", "numpy")
EXAMPLES = 5


def find_suite() -> Path:
    """Returns the checkout that ARRAY_API_TESTS names."""
    given = Path(os.environ.get("ARRAY_API_TESTS", ""))
    if not (given / "array_api_tests/test_special_cases.py").is_file():
        sys.exit("ARRAY_API_TESTS names no checkout of data-apis/array-api-tests; see --help")
    if not any((given / "array-api").iterdir()):
        sys.exit(f"{given}/array-api is empty: git submodule update --init")
    return given


def run(suite: Path, files: list[str], platform: str) -> dict[str, str]:
    """Returns the outcome of each test on a platform: passed, failed or skipped."""
    chosen = [f"array_api_tests/{name}.py" for name in files] or ["array_api_tests"]
    environment = os.environ | {
        "ARRAY_API_TESTS_MODULE": "plugrt.array_api",
        "JAX_ENABLE_X64": "1",
        "JAX_PLATFORMS": platform,
    }
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "--disable-deadline", "--derandomize",
                   f"--max-examples={EXAMPLES}", f"--junit-xml={report}", *chosen]  # fmt: skip
        for plugin in ("randomly", "xdist", "cacheprovider"):
            command += ["-p", f"no:{plugin}"]
        status = subprocess.run(command, cwd=suite, env=environment).returncode
        if not report.is_file():
            sys.exit(f"pytest ended with {status} and no report")
        return read_report(report)


def read_report(report: Path) -> dict[str, str]:
    """Returns the outcomes of a JUnit file, by ``file.py::test[case]``."""
    found = {}
    for case in xml.parse(report).iter("testcase"):
        tags = {child.tag for child in case}
        outcome = "failed" if tags & {"failure", "error"} else "passed"
        module = case.get("classname", "").split(".")[1]
        name = f"{module}.py::{case.get('name')}"
        found[name] = "skipped" if "skipped" in tags else outcome
    return found


def read_reasons(text: str, platform: str) -> dict[str, bool]:
    """Returns for each test with a reason on a platform whether it fails for some examples only.

    Raises `ValueError` for a test with two reasons.
    """
    found: dict[str, bool] = {}
    for entry in tomllib.loads(text)["failures"]:
        if platform in entry.get("platforms", PLATFORMS):
            for name in entry["tests"]:
                if name in found:
                    raise ValueError(f"{REASONS.name} has two reasons for {name}")
                found[name] = entry.get("sometimes", False)
    return found


def find_mistakes(outcomes: Mapping[str, str], reasons: Mapping[str, bool]) -> list[str]:
    """Returns a line for each failure without a reason, and for each reason that is stale."""
    found = [
        f"failed without a reason: {name}"
        for name, outcome in outcomes.items()
        if outcome == "failed" and name not in reasons
    ]
    files = {name.partition("::")[0] for name in outcomes}
    for name, sometimes in reasons.items():
        outcome = outcomes.get(name)
        if outcome is None and name.partition("::")[0] in files:
            found.append(f"has a reason and is not in the suite: {name}")
        elif outcome not in (None, "failed") and not sometimes:
            found.append(f"has a reason and {outcome}: {name}")
    return found


def main(files: list[str]) -> int:
    """Runs the suite on each platform and returns the exit status."""
    if "--help" in files:
        print(__doc__)
        return 0
    suite, text, good = find_suite(), REASONS.read_text(encoding="utf-8"), True
    for platform in PLATFORMS:
        outcomes = run(suite, files, platform)
        counts = Counter(outcomes.values())
        print(f"{platform}:", ", ".join(f"{n} {outcome}" for outcome, n in counts.most_common()))
        for mistake in find_mistakes(outcomes, read_reasons(text, platform)):
            print(f"  {mistake}")
            good = False
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
