"""Without the device, the checks that do not need it still run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from plugrt.plugins import LibraryPlugin
from plugrt_sdk.conformance import Chapter, Level, Needs
from plugrt_sdk.export import export_capsule
from support import kit
from support.apart import runs_apart

pytestmark = runs_apart("sdk")

CHECKS = kit.checks()
FREE = {name for name, check in CHECKS.items() if not check.needs.has_client}
OF_INSTALLATIONS = {name for name in FREE if name.startswith("installed.")}
"""Not checked here: the plugins of this module are objects, not installations."""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))


def conform(name: str, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Returns the exit code and the report."""
    found = kit.conform(f"support.conformance_mutants:{name}", "--report", "r.json", *arguments)
    assert found.exception is None, found.exception
    return found.return_value, json.loads(Path("r.json").read_text())


def test_checks_without_a_device_are_judged() -> None:
    code, report = conform("absent")
    verdicts = {row["id"]: row["verdict"] for row in report["checks"]}
    assert {name for name in FREE if verdicts[name] == "PASS"} == FREE - OF_INSTALLATIONS
    assert {verdicts[name] for name in OF_INSTALLATIONS} == {"NOT-RUN"}
    assert {row["applies"] for row in report["checks"] if row["id"] in OF_INSTALLATIONS} == {False}
    assert {verdicts[name] for name in CHECKS.keys() - FREE} == {"NO-HARDWARE"}
    reasons = {row["got"] for row in report["checks"] if row["id"] not in FREE}
    assert len(reasons - {"as client.create"}) == 1, "the reason is written once"
    assert any(name.startswith("ahead_of_time.compile") for name in FREE)
    [created] = [row for row in report["checks"] if row["id"] == "client.create"]
    assert "no frobnitz device found" in created["got"]
    assert (code, report["level"]) == (0, 0)


def test_a_selection_of_which_all_needs_the_device_proves_nothing() -> None:
    names = ["client.create", "programs.add"]
    code, report = conform("absent", *(f"--check={name}" for name in names))
    assert [row["id"] for row in report["checks"] if row["verdict"] == "NO-HARDWARE"] == names
    assert (code, report["level"]) == (2, None)


def test_a_fault_that_shows_without_the_device_is_a_failure() -> None:
    code, report = conform("absent_and_wrong", "-k", "ahead_of_time")
    bad = [row["id"] for row in report["checks"] if row["verdict"] == "FAIL"]
    assert bad == ["ahead_of_time.devices"]
    assert code == 1


def test_a_library_that_is_not_there_is_one_finding() -> None:
    code, report = conform("no_library", "--level", "0")
    rows = {row["id"]: row for row in report["checks"] if row["level"] == 0}
    bad = {name for name, row in rows.items() if row["verdict"] == "FAIL"}
    assert bad == {"host.library", "host.probe.answer", "host.probe.time"}
    assert "/nonexistent/libpjrt_mutant.so" in rows["host.library"]["got"]
    assert {row["verdict"] for name, row in rows.items() if name.startswith("abi.")} == {"NOT-RUN"}
    assert (code, report["level"]) == (1, None)


def test_a_library_that_is_not_there_is_a_finding_whatever_is_selected() -> None:
    code, report = conform("no_library", "--check", "abi.slots")
    assert [row["id"] for row in report["checks"] if row["verdict"] == "FAIL"] == ["host.library"]
    assert code == 1


def test_functions_of_a_library_are_called_with_what_it_needs_while_it_starts() -> None:
    """Without them libtpu queries a server of Google's for minutes."""
    seen: list[bool] = []

    class Library(LibraryPlugin):
        is_starting = False

        @contextmanager
        def starting(self) -> Iterator[None]:
            self.is_starting = True
            yield
            self.is_starting = False

    plugin = Library("library", c_api=export_capsule(lambda: None))
    chapter = Chapter("here", Level.INSTALLS, "this test", needs=Needs.LIBRARY)
    chapter.add("starting", "A statement.", lambda _: seen.append(plugin.is_starting), why="it is")
    [check] = chapter
    assert kit.judge_one(lambda: plugin, check).verdict == "PASS"
    assert (seen, plugin.is_starting) == ([True], False)
