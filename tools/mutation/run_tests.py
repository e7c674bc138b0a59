"""Runs tests in a copy of the tree for tools/mutants.py, which starts this file as a script.

``run_tests.py REQUEST``: a JSON file with ``tests`` (files, or names of tests), ``answer`` (the
JSON file of outcomes), and optionally ``coverage`` (the data file to write) with ``sources``, the
folders of product code, and ``extensions``, modules in C that count their basic blocks.

The answer maps each test to its seconds, its outcome and the blocks in C that it reached. Without
``coverage`` the first failure ends the run, and the answer is there from the first test on: a test
that ends the process is "crashed" in it.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest


class Blocks:
    """The basic blocks of extensions in C that ran since the last look, as ``blocks.c`` notes."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.libraries: dict[str, ctypes.CDLL] = {}

    def take(self) -> dict[str, list[int]]:
        """Returns the offsets of the blocks reached in each extension, and forgets them."""
        found = {}
        for name in self.names:
            if name not in self.libraries and name in sys.modules:
                self.libraries[name] = ctypes.CDLL(str(sys.modules[name].__file__))
            if name in self.libraries:
                library = self.libraries[name]
                offsets = (ctypes.c_uint32 * library.plugrt_blocks(None, 0))()
                count = library.plugrt_blocks(offsets, len(offsets))
                found[name] = list(offsets[:count])
        return found


class Outcomes:
    """A plugin of pytest: keeps outcomes, tells coverage which test runs, orders what was asked."""

    def __init__(self, request: dict[str, Any], coverage: Any) -> None:
        self.wanted = {name: place for place, name in enumerate(request["tests"])}
        self.path = Path(request["answer"])
        self.coverage = coverage
        self.blocks = Blocks(request.get("extensions", []))
        self.tests: dict[str, dict[str, Any]] = {}

    def write(self) -> None:
        """Writes the answer, whole or not at all."""
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(self.tests), encoding="utf-8")
        part.replace(self.path)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[Any]) -> None:
        """Keeps the tests that were asked for, in the order of their files there."""
        if not any("::" in name for name in self.wanted):
            return
        files: dict[str, int] = {}
        for name, place in self.wanted.items():
            files.setdefault(name.split("::")[0], place)
        config.hook.pytest_deselected(items=[i for i in items if i.nodeid not in self.wanted])
        items[:] = [item for item in items if item.nodeid in self.wanted]
        items.sort(key=lambda item: files[item.nodeid.split("::")[0]])

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Measures one test."""
        test = self.tests[item.nodeid] = {"seconds": 0.0, "outcome": "crashed"}
        if self.coverage is not None:
            self.blocks.take()
            self.coverage.switch_context(item.nodeid)
        else:
            self.write()
        begun = time.monotonic()
        try:
            return (yield)
        finally:
            test["seconds"] = round(time.monotonic() - begun, 3)
            if self.coverage is not None:
                test["blocks"] = self.blocks.take()
                self.coverage.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keeps the outcome of a test: the worst of its phases."""
        test = self.tests[report.nodeid]
        if report.failed:
            test["outcome"] = "failed"
            test["error"] = str(report.longrepr)[-1500:]
            self.write()
        elif report.skipped and test["outcome"] != "failed":
            test["outcome"] = "xfailed" if hasattr(report, "wasxfail") else "skipped"
        elif report.when == "call" and test["outcome"] == "crashed":
            test["outcome"] = "passed"

    def pytest_sessionfinish(self) -> Iterator[None] | None:
        """Writes the outcomes."""
        self.write()
        return None


def main(path: str) -> int:
    """Runs what the request asks for."""
    request = json.loads(Path(path).read_text(encoding="utf-8"))
    coverage = None
    if "coverage" in request:
        from coverage import Coverage

        coverage = Coverage(
            data_file=request["coverage"],
            config_file=False,
            include=[f"{folder}/*" for folder in request["sources"]],
            messages=False,
        )
        coverage.start()
    files = list(dict.fromkeys(name.split("::")[0] for name in request["tests"]))
    options = ["-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=short"]
    options += [] if coverage else ["-x"]
    ended = pytest.main(
        [*options, *request.get("options", []), *files], [Outcomes(request, coverage)]
    )
    if coverage is not None:
        coverage.stop()
        coverage.save()
    return int(ended)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
