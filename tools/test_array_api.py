"""Runs the test suite of the Python array API standard: ``make test-array-api``.

    ARRAY_API_TESTS=path/to/array-api-tests python tools/test_array_api.py [FILE ...]

The path is a checkout of https://github.com/data-apis/array-api-tests with its submodule, and
``pip install -r requirements.txt`` of it done. All 64-bit dtypes are there, and each test tries 5
random examples (``--max-examples``); that takes two minutes. At least 1,305 tests must pass, and
each that fails must have its reason in ``tools/array_api_failures.toml``. A FILE is one of the
suite's, such as ``test_linalg``; then only the reasons count.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as xml
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
REASONS = ROOT / "tools/array_api_failures.toml"
LEAST = 1305
EXAMPLES = 5


def find_suite() -> Path:
    """Returns the checkout that ARRAY_API_TESTS names."""
    given = Path(os.environ.get("ARRAY_API_TESTS", ""))
    if not (given / "array_api_tests/test_special_cases.py").is_file():
        sys.exit("ARRAY_API_TESTS names no checkout of data-apis/array-api-tests; see --help")
    if not any((given / "array-api").iterdir()):
        sys.exit(f"{given}/array-api is empty: git submodule update --init")
    return given


def run(suite: Path, files: list[str]) -> dict[str, str]:
    """Returns the outcome of each test: passed, failed or skipped."""
    chosen = [f"array_api_tests/{name}.py" for name in files] or ["array_api_tests"]
    environment = os.environ | {
        "ARRAY_API_TESTS_MODULE": "plugrt.array_api",
        "JAX_ENABLE_X64": "1",
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


def unexplained(outcomes: dict[str, str], reasons: str) -> list[str]:
    """Returns the tests that failed and that no pattern of the reasons matches."""
    patterns = [p for entry in tomllib.loads(reasons)["failures"] for p in entry["tests"]]
    failed = [name for name, outcome in outcomes.items() if outcome == "failed"]
    return [name for name in failed if not any(re.fullmatch(p, name) for p in patterns)]


def main(files: list[str]) -> int:
    """Runs the suite and returns the exit status."""
    if "--help" in files:
        print(__doc__)
        return 0
    outcomes = run(find_suite(), files)
    counts = Counter(outcomes.values())
    print(", ".join(f"{n} {outcome}" for outcome, n in counts.most_common()))
    strange = unexplained(outcomes, REASONS.read_text())
    for name in strange:
        print(f"failed, and {REASONS.name} does not say why: {name}")
    few = not files and counts["passed"] < LEAST
    if few:
        print(f"{counts['passed']} passed; {LEAST} are to")
    return 1 if strange or few else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
