"""The plot of the benchmarks and its page agree with the recorded figures."""

from __future__ import annotations

import importlib
import json
import re
import sys
from typing import Any

import pytest

from support import children
from support.markdown import ROOT, load_script

generate = load_script("docs/generate/benchmarks.py")


@pytest.fixture
def data() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(generate.DATA.read_text(encoding="utf-8"))
    return found


def test_picture_and_page_are_current(data: dict[str, Any]) -> None:
    assert generate.PICTURE.read_text(encoding="utf-8") == generate.draw(data), "make docs"
    assert generate.PAGE.read_text(encoding="utf-8") == generate.page(data), "make docs"


def test_each_figure_is_a_question_of_the_benchmark(data: dict[str, Any]) -> None:
    source = (ROOT / data["script"]).read_text(encoding="utf-8")
    for run in data["runs"]:
        for name in run["ratios"]:
            assert f'"{name}"' in source, f"{data['script']} does not measure {name!r}"


def test_the_figures_are_judged_by_the_budgets(
    data: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls that are measured separately have the same budgets."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    cores, devices = (importlib.import_module(name) for name in ("cores", "devices"))
    for name, budgets in (("cores", cores.BUDGETS), ("devices", devices.BUDGETS)):
        for platform in cores.PLATFORMS:
            rows = [row for row in data[name]["rows"] if row["platform"] == platform]
            ratios = {row["name"]: row["c"] for row in rows}
            for row in rows:
                budget = cores.limit(row["name"], ratios, budgets, platform)
                holds = None if budget is None else row["c"] <= budget
                assert (row["budget"], row["holds"]) == (budget, holds), row
    assert {row["budget"] for row in data["tables"]["pmap"]["rows"]} == {None, 0.7, 1.05}
    harness = importlib.import_module("harness")
    rows = [harness.row(name, [(0.97, 1.0)], 2.0) for name in ("jitted call, 2 arguments", "new")]
    judged = cores.judge(rows, "cpu", cores.BUDGETS)
    assert [(row.budget, row.holds) for row in judged] == [(0.95, False), (2.0, True)]
    name = "a @ b, one all-reduce"
    for alone, most in ((1.5, 1.05 * 1.5), (0.5, 1.0)):
        rows = [harness.row(name, [(1.2, 1.0)], None)]
        rows.append(harness.row(f"{name}: the launch alone", [(alone, 1.0)], None))
        assert cores.judge(rows, "cpu", devices.BUDGETS)[0].budget == most


def test_the_pages_have_one_figure_of_what_catching_exceptions_adds(data: dict[str, Any]) -> None:
    """For a call on a library, and at most 2 %."""
    table = data["instructions"]
    for page in ("benchmarks", "plugins"):
        text = " ".join((ROOT / f"docs/{page}.md").read_text(encoding="utf-8").split())
        assert generate.describe_guard(table) in text, page
    caught, uncaught = (sum(row[side] for row in table["rows"]) for side in ("plugrt", "uncaught"))
    assert uncaught < caught < 1.02 * uncaught
    assert generate.describe_guard({"rows": [{"plugrt": 2040, "uncaught": 2000}]}) == (
        "2.0 % (40 of 2,040 instructions)"
    )


def test_the_command_that_measures_writes_each_table() -> None:
    noxfile = (ROOT / "noxfile.py").read_text(encoding="utf-8")
    [measured] = re.findall(r"^MEASURED = \((.*?)^\)", noxfile, re.MULTILINE | re.DOTALL)
    assert {"dispatch", "cores", "devices", "library", *generate.TABLES} == {
        *re.findall(r'"(\w+)"', measured)
    }
    script = ROOT / "benchmarks/run_all.py"
    done = children.run([sys.executable, str(script), "nothing"], timeout=60)
    assert done.returncode == 2
    assert "there is no benchmark 'nothing'; there are startup, " in done.stderr
