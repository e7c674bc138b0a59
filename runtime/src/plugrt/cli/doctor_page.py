"""``plugrt doctor --html``: the findings as one page that needs nothing else and no network."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

from plugrt.cli.doctor_checks import Examination, describe_owner
from plugrt.cli.html import Element, element, join
from plugrt.plugins.record import State

_STYLE = """
:root { color-scheme: light dark; --text: #1c2430; --back: #ffffff; --soft: #5b6675;
  --line: #d8dee6; --card: #f5f7fa; --good: #18794e; --bad: #b42318; --mid: #8a5a00; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e8ee; --back: #14181f; --soft: #9aa6b5;
  --line: #333c48; --card: #1d232c; --good: #5bd69a; --bad: #ff8f85; --mid: #f0bf63; } }
body { margin: 0 auto; max-width: 70rem; padding: 1.5rem; background: var(--back);
  color: var(--text); font: 15px/1.5 system-ui, sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.6rem; margin: 0; } h2 { font-size: 1.1rem; margin: 2rem 0 .6rem; }
p, ul { margin: .4rem 0; } .soft { color: var(--soft); }
.verdict { border-left: .4rem solid var(--good); background: var(--card); padding: .8rem 1rem;
  margin: 1rem 0; border-radius: .3rem; } .verdict.failed { border-color: var(--bad); }
.good { color: var(--good); } .bad { color: var(--bad); } .mid { color: var(--mid); }
.state { font-weight: 600; white-space: nowrap; }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .45rem .7rem .45rem 0;
  border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; font-size: .85rem; }
th.number, td.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
td.long { min-width: 16rem; } td > :first-child { margin-top: 0; }
code, pre { font: 13px/1.45 ui-monospace, monospace; }
pre { background: var(--card); padding: .8rem; border-radius: .3rem; overflow-x: auto;
  white-space: pre-wrap; }
@media (max-width: 46rem) { thead { display: none; } tr, td, td.number { display: block; }
  tr { border-bottom: 1px solid var(--line); padding: .6rem 0; }
  td, td.number { border: 0; padding: .1rem 0; text-align: left; }
  td:empty { display: none; } td[data-label]::before { content: attr(data-label) " ";
  color: var(--soft); } }
details { margin: .4rem 0; } summary { cursor: pointer; color: var(--soft); }
"""
_CLASSES = {
    "initialised": "good",
    "broken": "bad",
    "incompatible": "bad",
    "duplicate": "mid",
    "unavailable": "mid",
}
"""How a state is coloured."""
_NUMBERS = {"priority", "ms"}
"""The columns of numbers."""


def page(found: Examination) -> str:
    """Returns the page; every text in it is shown as it is, whatever it holds."""
    body = [
        element("h1", "plugrt doctor"),
        element("p", _versions(found), class_="soft"),
        _verdict(found),
        _section("Plugins", _candidates(found.candidates)),
        _section("Settings", _settings(found.settings)),
        _section("Journal", _journal(found.steps)),
        element("p", f"Written by plugrt doctor --html on {time.strftime('%Y-%m-%d %H:%M:%S %z')}.",
                class_="soft"),
    ]  # fmt: skip
    head = [
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        # Should a text come through after all, nothing of it runs or is fetched.
        element("meta", http_equiv="Content-Security-Policy",
                content="default-src 'none'; style-src 'unsafe-inline'"),
        element("title", f"plugrt doctor: {found.verdict}"),
        element("style", Element(_STYLE)),
    ]  # fmt: skip
    whole = element("html", element("head", *head), element("body", *body), lang="en")
    return f"<!doctype html>\n{whole}\n"


def _versions(found: Examination) -> str:
    return ", ".join(f"{name} {version}" for name, version in found.versions.items())


def _verdict(found: Examination) -> Element:
    lines = [element("p", element("strong", f"{found.verdict} ({found.elapsed_s:.1f} s)"))]
    if found.chosen:
        lines.append(element("p", "Chosen: ", found.choice))
    for label, class_, texts in (
        ("Problem", "bad", found.problems),
        ("Warning", "mid", found.warnings),
        ("Hint", "soft", found.hints),
    ):
        lines += [element("p", element("strong", label, class_=class_), f": {t}") for t in texts]
    return element("div", *lines, class_="verdict failed" if found.problems else "verdict")


def _section(title: str, content: Element) -> Element:
    return join(element("h2", title), content) if content else Element("")


def _table(columns: Sequence[str], rows: Iterable[Sequence[Element]]) -> Element:
    head = element("tr", *map(_heading, columns))
    body = [element("tr", *cells) for cells in rows]
    table = element("table", element("thead", head), element("tbody", *body))
    return element("div", table, class_="wide") if body else Element("")


def _heading(name: str) -> Element:
    return element("th", name, class_="number") if name in _NUMBERS else element("th", name)


def _candidates(rows: list[dict[str, Any]]) -> Element:
    columns = ("name", "state", "priority", "from", "ms", "why, and what would help")
    return _table(columns, map(_candidate, rows))


def _candidate(row: dict[str, Any]) -> list[Element]:
    priority = "" if row["priority"] is None else row["priority"]
    state = element("span", row["state"], class_=f"state {_CLASSES.get(row['state'], 'soft')}")
    why = [element("p", row["reason"])] if row["reason"] else []
    if row["cure"]:
        label = "To use it: " if row["state"] == State.NOT_SELECTED else "Fix: "
        why.append(element("p", element("strong", label), row["cure"]))
    facts = {key: row[key] for key in ("platform", "source", "value", "library") if row[key]}
    facts |= row.get("probe", {}).get("facts", {})
    listed = "\n".join(f"{key}: {value}" for key, value in facts.items())
    why.append(_make_foldable("details", listed))
    if row["traceback"]:
        why.append(_make_foldable("traceback", row["traceback"]))
    return [
        element("td", element("strong", row["name"])),
        element("td", state),
        element("td", priority, class_="number", data_label="priority"),
        element("td", describe_owner(row), data_label="from"),
        element("td", f"{row['elapsed_ms']:.0f}", class_="number", data_label="ms"),
        element("td", *why, class_="long"),
    ]


def _settings(settings: list[dict[str, str]]) -> Element:
    rows = [
        [
            element("td", element("code", s["variable"])),
            element("td", element("code", s["value"])),
            element("td", s["source"], data_label="from"),
            element("td", s["doc"], class_="long"),
        ]
        for s in settings
    ]
    return _table(("variable", "value", "source", "what it does"), rows)


def _journal(steps: list[str]) -> Element:
    return _make_foldable(f"{len(steps)} steps", "\n".join(steps)) if steps else Element("")


def _make_foldable(title: str, content: str) -> Element:
    return element("details", element("summary", title), element("pre", content))
