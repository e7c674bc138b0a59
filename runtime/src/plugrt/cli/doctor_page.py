"""``plugrt doctor --html``: the findings as one page that needs nothing else and no network."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

from plugrt.cli.doctor_checks import Examination, describe_owner
from plugrt.cli.doctor_jax import describe_jax
from plugrt.cli.html import Element, element, join
from plugrt.cli.html_page import html_page
from plugrt.plugins.record import State

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
        element("p", f"core: {found.core}", class_="soft"),
        _verdict(found),
        _section("Plugins", _candidates(found.candidates)),
        _section("Facts", _facts(found.facts)),
        _section("Settings", _settings(found.settings)),
        _section("Journal", _journal(found.steps)),
        element("p", f"Written by plugrt doctor --html on {time.strftime('%Y-%m-%d %H:%M:%S %z')}.",
                class_="soft"),
    ]  # fmt: skip
    return html_page(f"plugrt doctor: {found.verdict}", *body)


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
    if row.get("jax"):
        label = element("strong", "JAX will find it: ")
        why.append(element("p", label, describe_jax(row)))
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


def _facts(facts: list[dict[str, Any]]) -> Element:
    rows = [
        [
            element("td", fact["from"], data_label="from"),
            element("td", element("strong", fact["name"])),
            element("td", str(fact["value"]), class_="long"),
        ]
        for fact in facts
    ]
    return _table(("from", "fact", "value"), rows)


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
