"""``plugrt doctor``: prints settings, plugins, the chosen backend and why, and problems."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

import click

from plugrt.base import files
from plugrt.cli.doctor_checks import Examination, describe_owner, examine
from plugrt.cli.doctor_jax import describe_jax, explain_missing_jax
from plugrt.cli.html import Element, element, html_page, join
from plugrt.cli.output import json_option, print_json, print_line, print_table
from plugrt.errors import FileRefused
from plugrt.plugins.record import State

_PAGE = "plugrt-doctor.html"


@click.command("doctor", short_help="Explain settings, plugins, and the choice.")
@json_option
@click.option(
    "--html", "html", is_flag=False, flag_value=_PAGE, metavar="[FILE]",
    help=f"Write the report as HTML, to FILE or {_PAGE}.",
)  # fmt: skip
def command(as_json: bool, html: str | None) -> int:
    """Explain the settings, every plugin, and which is chosen.

    Plugins are started as a program would start them, but in a process of their own. Exits with 1
    if something that was asked for does not work.
    """
    try:
        path = None if html is None else files.claim(html)
    except FileRefused as error:
        raise click.BadParameter(str(error), param_hint="--html") from error
    found = examine()
    if path is not None:
        # A lone surrogate, of a file's name say, has no bytes in UTF-8.
        path.write_bytes(page(found).encode("utf-8", "backslashreplace"))
    if as_json:
        print_json(found.as_dict())
    elif path is None:
        print_examination(found)
    else:
        print_line(f"{found.verdict} ({found.elapsed_s:.1f} s)")
        print_line(f"wrote {path}")
    return 1 if found.problems else 0


def print_examination(found: Examination) -> None:
    """Prints the findings of `examine`: versions, settings, plugins and the choice."""
    print_line(", ".join(f"{name} {version}" for name, version in found.versions.items()))
    if found.core:
        print_line(f"core: {found.core}")
    if found.settings:
        print_table(
            ("variable", "value", "source"),
            [(s["variable"], s["value"], s["source"]) for s in found.settings],
            "Settings",
        )
    if found.candidates:
        print_table(
            ("name", "priority", "state", "from", "ms", "why, and what would help"),
            [_row(row) for row in found.candidates],
            "Plugins",
        )
        _print_jax(found.candidates)
    if found.facts:
        rows = [(fact["from"], fact["name"], fact["value"]) for fact in found.facts]
        print_table(("from", "fact", "value"), rows, "Facts")
    for label, lines in (("warning", found.warnings), ("hint", found.hints)):
        for line in lines:
            print_line(f"{label}: {line}")
    if found.chosen:
        print_line(f"chosen: {found.choice}")
    for problem in found.problems:
        print_line(f"problem: {problem}")
    print_line(f"{found.verdict} ({found.elapsed_s:.1f} s)")


def _print_jax(candidates: list[dict[str, object]]) -> None:
    if missing := explain_missing_jax():
        print_line(f"JAX will find none of them, because {missing}")
        return
    rows = [(row["name"], describe_owner(row), describe_jax(row)) for row in candidates]
    print_table(("name", "from", "JAX will find it"), rows, "Under JAX")


def _row(row: dict[str, object]) -> tuple[object, ...]:
    why = "; ".join(str(part) for part in (row["reason"], row["cure"]) if part)
    priority = "" if row["priority"] is None else row["priority"]
    return row["name"], priority, row["state"], describe_owner(row), f"{row['elapsed_ms']:.0f}", why


_CLASSES = {
    "initialised": "good",
    "broken": "bad",
    "incompatible": "bad",
    "duplicate": "mid",
    "unavailable": "mid",
}
"""The CSS class of a state, which sets its colour."""
_NUMBERS = {"priority", "ms"}
"""The columns of numbers."""


def page(found: Examination) -> str:
    """Returns the page; every text in it is escaped."""
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


def _candidates(rows: list[dict[str, object]]) -> Element:
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


def _facts(facts: list[dict[str, object]]) -> Element:
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
