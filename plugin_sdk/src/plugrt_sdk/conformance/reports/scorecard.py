"""`scorecard`: a report as one HTML page, whose checks can be filtered by level and verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from plugrt.cli.html import Element, element, html_page, join
from plugrt_sdk.conformance.check import Level
from plugrt_sdk.conformance.reports.operation_matrix import LEGEND, Line, operation_matrix
from plugrt_sdk.conformance.reports.report import describe_level, describe_provenance
from plugrt_sdk.conformance.verdict import Verdict

_STYLE = """
fieldset { border: 0; margin: .4rem 0; padding: 0; display: flex; flex-wrap: wrap; gap: .4rem;
  align-items: center; } legend { float: left; width: 4rem; color: var(--soft); }
button { font: inherit; color: var(--text); background: var(--card); cursor: pointer;
  border: 1px solid var(--line); border-radius: 1rem; padding: .3rem .8rem; min-height: 2.2rem; }
button[aria-pressed=true] { background: var(--text); color: var(--back); }
#filters { display: none; margin: 1rem 0; } .scripted #filters { display: block; }
#checks td { padding-right: .7rem; } #checks td:nth-child(2) { width: 100%; }
#checks code { font-weight: 600; } [hidden] { display: none !important; }
dl { margin: .4rem 0; display: grid; grid-template-columns: max-content 1fr; gap: .2rem .8rem; }
dt { color: var(--soft); } dd { margin: 0; min-width: 0; }
dd, #checks code { overflow-wrap: anywhere; }
@media (max-width: 46rem) { #checks, #checks tbody, dl { display: block; }
  dd { margin: 0 0 .4rem; } }
"""
_SCRIPT = """
"use strict";
const chosen = { level: "", verdict: "" };
const rows = [...document.querySelectorAll("#checks tbody tr")];
const buttons = [...document.querySelectorAll("#filters button")];
function show() {
  for (const row of rows)
    row.hidden = Object.entries(chosen).some(([key, value]) => value && row.dataset[key] !== value);
  for (const button of buttons)
    button.setAttribute("aria-pressed", chosen[button.dataset.key] === button.dataset.value);
  const count = rows.filter(row => !row.hidden).length;
  document.getElementById("shown").textContent = `${count} of ${rows.length} checks`;
}
for (const button of buttons)
  button.addEventListener("click", () => {
    chosen[button.dataset.key] = button.dataset.value;
    show();
  });
document.body.className = "scripted";
show();
"""
_CLASSES: Mapping[str, str] = {
    Verdict.PASS: "good", Verdict.REFUSED: "good", Verdict.FAIL: "bad", Verdict.CRASH: "bad",
    Verdict.TIMEOUT: "bad", Verdict.WAIVED: "mid", Verdict.NO_HARDWARE: "mid",
}  # fmt: skip
"""The colour of each verdict."""
_FACTS = (("Expected", "expected"), ("Got", "got"), ("Why it matters", "why"),
          ("Rests on", "rests_on"), ("Capability", "capability"), ("At", "where"))  # fmt: skip


def scorecard(report: Mapping[str, Any]) -> str:
    """Returns the page: the level, counts, each check with its finding, and the provenance.

    All texts are escaped. Without JavaScript all checks are shown.
    """
    reached = describe_level(report)
    title = f"Conformance of {report['plugin']['name']}: {reached}"
    bad = any(Verdict(row["verdict"]).is_bad for row in report["checks"])
    counts = ", ".join(f"{count} {verdict}" for verdict, count in report["counts"].items() if count)
    return html_page(
        title,
        element("h1", f"Conformance of {report['plugin']['name']}"),
        element(
            "div", element("p", element("strong", reached[0].upper() + reached[1:])),
            element("p", counts), element("p", report["not_shown"]),
            class_="verdict failed" if bad else "verdict",
        ),
        _levels(report),
        element("h2", "Checks"),
        _filters(report),
        _checks(report),
        *(element("p", f"Note: {note}") for note in report["notes"]),
        *_operations(report),
        element("h2", "Provenance"),
        _list(describe_provenance(report)),
        style=_STYLE,
        script=_SCRIPT,
    )  # fmt: skip


def _levels(report: Mapping[str, Any]) -> Element:
    verdicts = [verdict for verdict in Verdict if report["counts"][verdict]]
    heads = [element("th", verdict, class_="number") for verdict in verdicts]
    head = element("tr", element("th", "level"), *heads)
    body = []
    for level in Level:
        counts = report["counts_of_levels"][str(int(level))]
        cells = (element("td", counts[v] or "", class_="number", data_label=v) for v in verdicts)
        body.append(element("tr", element("td", element("strong", _name(level))), *cells))
    table = element("table", element("thead", head), element("tbody", *body))
    return element("div", table, class_="wide")


def _operations(report: Mapping[str, Any]) -> Iterator[Element]:
    dtypes, lines = operation_matrix(report)
    if not lines:
        return
    yield element("h2", "Operations by dtype and rank")
    yield element("p", LEGEND)
    head = element("tr", *(element("th", name) for name in ("operation", *dtypes, "ranks")))
    body = (element("tr", *(element("td", text) for text in _cells(line))) for line in lines)
    table = element("table", element("thead", head), element("tbody", *body))
    yield element("div", table, class_="wide")


def _cells(line: Line) -> tuple[str, ...]:
    return (line.operation, *line.marks, line.ranks)


def _name(level: Level) -> str:
    return f"{int(level)} {level.name.capitalize()}"


def _filters(report: Mapping[str, Any]) -> Element:
    verdicts = [verdict for verdict in Verdict if report["counts"][verdict]]
    return element(
        "div",
        _choice("Level", "level", [(str(int(level)), _name(level)) for level in Level]),
        _choice("Verdict", "verdict", [(v, f"{v} {report['counts'][v]}") for v in verdicts]),
        element("p", id="shown", class_="soft", aria_live="polite"),
        id="filters",
    )  # fmt: skip


def _choice(title: str, key: str, values: list[tuple[str, str]]) -> Element:
    buttons = [
        element(
            "button", shown, type="button", data_key=key, data_value=value, aria_pressed="false"
        )
        for value, shown in [("", "All"), *values]
    ]
    return element("fieldset", element("legend", title), *buttons)


def _checks(report: Mapping[str, Any]) -> Element:
    heads = ("verdict", "check", "level", "ms")
    head = element("tr", *(element("th", name) for name in heads))
    body = element("tbody", *map(_check, report["checks"]))
    return element("table", element("thead", head), body, id="checks")


def _check(row: Mapping[str, Any]) -> Element:
    verdict = Verdict(row["verdict"])
    opened = {"open": "open"} if verdict.is_bad else {}
    found = element("details", element("summary", row["title"]), _list(_facts(row)), **opened)
    time = f"{1000 * row['seconds']:.0f}" if row["seconds"] else ""
    return element(
        "tr",
        element("td", element("span", verdict, class_=f"state {_CLASSES.get(verdict, 'soft')}")),
        element("td", element("code", row["id"]), found),
        element("td", row["level"], class_="number", data_label="level"),
        element("td", time, class_="number", data_label="ms"),
        data_level=row["level"], data_verdict=verdict,
    )  # fmt: skip


def _facts(row: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    yield from ((label, row[key]) for label, key in _FACTS if row[key])
    if waiver := row["waiver"]:
        yield f"Waived until {waiver['until']}", f"{waiver['reason']} ({waiver['url']})"
    yield "To run it", element("code", row["reproduce"])


def _list(facts: Iterator[tuple[str, object]]) -> Element:
    return element("dl", *(join(element("dt", k), element("dd", v)) for k, v in facts))
