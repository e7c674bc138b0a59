"""Runs tests in a copy of the tree for tools/mutants.py, which starts this file as a script.

``run_tests.py REQUEST``: a JSON file with ``tests`` (files, or names of tests), ``answer`` (the
JSON file of outcomes), and optionally ``coverage`` (the data file to write) with ``sources``, the
folders of product code, and ``extensions``, modules in C that count their basic blocks.

The answer maps each test to its seconds, its outcome and the blocks in C that it reached. Without
``coverage`` the first failure ends the run, and the answer exists from the first test on: a test
that ends the process has the outcome "crashed".
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from mutation_children import VARIABLE, reached_blocks, write_at_exit


class Outcomes:
    """A pytest plugin: records outcomes, sets coverage's context to the test, orders the tests."""

    def __init__(self, request: dict[str, Any], coverage: Any) -> None:
        self.wanted = {name: place for place, name in enumerate(request["tests"])}
        self.path = Path(request["answer"])
        self.coverage = coverage
        self.extensions = request.get("extensions", [])
        self.tests: dict[str, dict[str, Any]] = {}

    def write(self) -> None:
        """Writes the answer atomically."""
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(self.tests), encoding="utf-8")
        part.replace(self.path)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[Any]) -> None:
        """Keeps the requested tests, in the order of the request."""
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
            reached_blocks(self.extensions)
            self.coverage.switch_context(item.nodeid)
        else:
            self.write()
        begun = time.monotonic()
        try:
            return (yield)
        finally:
            test["seconds"] = round(time.monotonic() - begun, 3)
            if self.coverage is not None:
                test["blocks"] = reached_blocks(self.extensions)
                self.coverage.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Records the outcome of a test: the worst of its phases."""
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
    """Runs the tests of the request."""
    request = json.loads(Path(path).read_text(encoding="utf-8"))
    coverage = count_lines(request) if "coverage" in request else None
    files = list(dict.fromkeys(name.split("::")[0] for name in request["tests"]))
    options = ["-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=short"]
    options += [] if coverage else ["-x"]
    plugin = Outcomes(request, coverage)
    ended = pytest.main([*options, *request.get("options", []), *files], [plugin])
    if coverage is not None:
        coverage.stop()
        write_lines(request, coverage.get_data(), plugin)
    return int(ended)


def count_lines(request: dict[str, Any]) -> Any:
    """Starts counting lines in this process and in processes that tests start."""
    from coverage import Coverage

    folder = Path(request["coverage"]).with_suffix(".children")
    folder.mkdir(exist_ok=True)
    include = [f"{source}/*" for source in request["sources"]]
    settings = {"folder": str(folder), "include": include, "extensions": request["extensions"]}
    (folder / "settings").write_text(json.dumps(settings), encoding="utf-8")
    os.environ[VARIABLE] = str(folder / "settings")
    coverage = Coverage(data_file=None, config_file=False, include=include, messages=False)
    coverage.start()
    write_at_exit(coverage, os.getpid())
    return coverage


def write_lines(request: dict[str, Any], counted: Any, plugin: Outcomes) -> None:
    """Writes the counts of this process and of processes that tests started."""
    from coverage import CoverageData

    folder = Path(os.environ.pop(VARIABLE)).parent
    data = CoverageData(request["coverage"])
    data.update(counted)
    for path in folder.glob("*.json"):
        child = json.loads(path.read_text(encoding="utf-8"))
        data.set_context(child["test"])
        data.add_lines(child["lines"])
        known = plugin.tests.get(child["test"], {}).setdefault("blocks", {})
        for name, offsets in child["blocks"].items():
            known[name] = sorted({*known.get(name, ()), *offsets})
    plugin.write()
    shutil.rmtree(folder)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
