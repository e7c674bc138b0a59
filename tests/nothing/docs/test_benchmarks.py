"""The plot of the benchmarks and its page are those of the recorded figures."""

from __future__ import annotations

import copy
import importlib
import json
import re
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from support import children
from support.markdown import ROOT, load_script

generate = load_script("docs/generate/benchmarks.py")

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def data() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(generate.DATA.read_text(encoding="utf-8"))
    return found


def dots(picture: str, class_: str) -> list[float]:
    """Returns where the dots of a run lie, without the one of the key."""
    found = [c for c in ElementTree.fromstring(picture).iter(f"{SVG}circle")
             if c.get("class") == class_]  # fmt: skip
    return [float(c.attrib["cx"]) for c in found][1:]


def test_picture_and_page_are_current(data: dict[str, Any]) -> None:
    assert generate.PICTURE.read_text(encoding="utf-8") == generate.draw(data), "make docs"
    assert generate.PAGE.read_text(encoding="utf-8") == generate.page(data), "make docs"


def test_the_figures_say_where_they_come_from(data: dict[str, Any]) -> None:
    for run in data["runs"]:
        assert re.fullmatch(r"[0-9a-f]{40}(-dirty)?", run["commit"])
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", run["date"])
        assert "cores" in run["machine"]
        assert set(run["versions"]) == {"python", "jax", "jaxlib", "numpy"}
        assert all(0 < ratio < 100 for ratio in run["ratios"].values())


def test_each_figure_is_a_question_of_the_benchmark(data: dict[str, Any]) -> None:
    source = (ROOT / data["script"]).read_text(encoding="utf-8")
    for run in data["runs"]:
        for name in run["ratios"]:
            assert f'"{name}"' in source, f"{data['script']} does not measure {name!r}"


def test_the_dots_lie_where_the_ratios_are(data: dict[str, Any]) -> None:
    """On a logarithmic scale on which JAX's line is 1."""
    picture = generate.draw(data)
    [line] = [l for l in ElementTree.fromstring(picture).iter(f"{SVG}line")  # noqa: E741
              if l.get("class") == "jax"]  # fmt: skip
    one = float(line.attrib["x1"])
    for run, class_ in zip(data["runs"], ("before", "now"), strict=True):
        places = dots(picture, class_)
        ratios = list(run["ratios"].values())
        assert len(places) == len(ratios)
        assert [p < one for p in places] == [r < 1 for r in ratios]
        assert sorted(ratios) == [r for _, r in sorted(zip(places, ratios, strict=True))]


def test_any_figures_and_names_are_drawn(data: dict[str, Any]) -> None:
    drawn = copy.deepcopy(data)
    extra = {'<b> & "q"': 0.01, "far": 90.0, "one": 1.0}
    for run in drawn["runs"]:
        run["ratios"] = extra
    root = ElementTree.fromstring(generate.draw(drawn))
    texts = [t.text for t in root.iter(f"{SVG}text")]
    assert {'<b> & "q"', "far", "0.01", "90.00"} <= set(texts)
    width = float(root.attrib["viewBox"].split()[2])
    assert all(0 < float(c.attrib["cx"]) < width for c in root.iter(f"{SVG}circle"))


def test_a_new_run_takes_the_place_of_the_last(data: dict[str, Any], tmp_path: Path) -> None:
    first = copy.deepcopy(data["runs"][0])
    environment = {"python": "3.12", "machine": "Linux", "cores": "8", "load": "0.1 0.2 0.3",
                   "jax": "1", "jaxlib": "2", "numpy": "3", "plugrt": "0.1.0"}  # fmt: skip
    rows = [{"name": "two NumPy", "ratio": 0.123456}, {"name": "new", "ratio": 2.0}]
    measured = {"dispatch": {"title": "Calls", "environment": environment, "rows": rows}}
    row = {"name": "put of 64 MB", "ours": 0.0375, "jax": 5e-5, "ratio": 0.5, "of_least": 0.4,
           "budget": 0.3, "holds": False}  # fmt: skip
    more = {"name": "of nothing", "ours": 2e-9, "jax": 3.0, "ratio": 1.0, "budget": None,
            "holds": None}  # fmt: skip
    for name in generate.TABLES + generate.ON_A_GPU:
        table = {"title": f"Of {name}", "environment": environment, "rows": [row, more]}
        measured[name] = table
    calls = [
        {"name": "f(x)", "platform": "cpu", "jax": 5e-6, "c": 0.8, "python": 1.1, "budget": 0.85},
        {"name": "f(x)", "platform": "xla_cpu", "jax": 6e-6, "c": 0.4, "python": 0.7,
         "budget": None},
    ]  # fmt: skip
    calls[0]["holds"] = True
    for name in ("cores", "devices"):
        measured[name] = {"title": "In C", "environment": environment, "rows": calls}
    sides = {
        "name": "a call",
        "seconds": {"plugrt": 3e-6, "JAX": 6e-6, "pypjrt": 5e-5, "C": 2e-6},
        "ratios": {"JAX": 0.5, "pypjrt": 0.06, "C": 1.5},
        "of_least": {"JAX": 0.45, "pypjrt": 0.05, "C": 1.4},
        "budgets": {"C": 1.35},
    }
    measured["library"] = {"title": "Of five", "environment": environment, "rows": [sides]}
    for name, found in measured.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(found))
    generate.record(data, tmp_path)
    assert data["runs"][0] == first
    assert data["runs"][1]["ratios"] == {"two NumPy": 0.12, "new": 2.0}
    assert data["runs"][1]["machine"] == "8 cores, Linux, load 0.1 0.2 0.3"
    assert data["runs"][1]["versions"] == {
        "python": "3.12", "jax": "1", "jaxlib": "2", "numpy": "3",
    }  # fmt: skip
    assert "| new |  | 2.00 |" in generate.page(data)
    picture = generate.draw(data)
    assert len(dots(picture, "now")) == 2
    assert len(dots(picture, "before")) == 1, "the new one was not measured before"
    page = generate.page(data)
    put = "| put of 64 MB | 37.5 ms | 50 µs | 0.50 | 0.30, over |"
    assert page.count(put) == len(generate.TABLES + generate.ON_A_GPU)
    assert "| of nothing | 2 ns | 3 s | 1.00 |  |" in page
    assert all(
        f"## Of {name}\n\nBy `benchmarks/{name}.py`" in page
        for name in generate.TABLES + generate.ON_A_GPU
    )
    assert page.count("| f(x) | 5 µs | 0.80 (0.85, kept) | 1.10 | 6 µs | 0.40 | 0.70 |") == 2
    assert (
        "| a call | 3 µs |  | 6 µs | 50 µs | 2 µs | 0.50, 0.45 | 1.50 (1.35, over), 1.40 |" in page
    )
    assert "of_least" not in json.dumps([data["tables"], data["cores"]])
    for path in tmp_path.iterdir():  # a run of one benchmark changes its own table alone
        if path.stem != "library":
            path.unlink()
    before = copy.deepcopy(data)
    generate.record(data, tmp_path)
    assert data == before


def test_the_figures_are_judged_by_the_budgets(
    data: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the calls that are measured alone, too, which have no softer ones."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    cores, devices = (importlib.import_module(name) for name in ("cores", "devices"))
    for name, budgets in (("cores", cores.BUDGETS), ("devices", devices.BUDGETS)):
        for row in data[name]["rows"]:
            budget = budgets.get(row["name"], (None, None))[cores.PLATFORMS.index(row["platform"])]
            holds = None if budget is None else row["c"] <= budget
            assert (row["budget"], row["holds"]) == (budget, holds), row
    assert set(devices.BUDGETS.values()) == {(0.7, 0.7), (0.6, 0.6), (0.8, 0.8)}
    assert {row["budget"] for row in data["tables"]["pmap"]["rows"]} == {None, 0.7}
    harness = importlib.import_module("harness")
    rows = [harness.row(name, [(0.9, 1.0)], 2.0) for name in ("jitted call, 2 arguments", "new")]
    judged = cores.judge(rows, "cpu", cores.BUDGETS)
    assert [(row.budget, row.holds) for row in judged] == [(0.85, False), (2.0, True)]


def test_the_pages_have_one_figure_of_what_catching_exceptions_adds(data: dict[str, Any]) -> None:
    """Of a call on a library, and at most 2 %."""
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
