"""`print_report`: a report for the terminal, at any width."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import click

from plugrt_sdk.conformance.check import Level
from plugrt_sdk.conformance.reports.findings import group_alike, name_others
from plugrt_sdk.conformance.reports.report import (
    describe_basis,
    describe_level,
    describe_tolerances,
)
from plugrt_sdk.conformance.verdict import Verdict

_STYLES: Mapping[str, dict[str, Any]] = {
    Verdict.PASS: {"fg": "green"},
    Verdict.REFUSED: {"fg": "green", "dim": True},
    Verdict.FAIL: {"fg": "red", "bold": True},
    Verdict.CRASH: {"fg": "red", "bold": True},
    Verdict.TIMEOUT: {"fg": "red", "bold": True},
    Verdict.WAIVED: {"fg": "yellow"},
    Verdict.NO_HARDWARE: {"fg": "yellow"},
    Verdict.NOT_RUN: {"dim": True},
}
_LABELS = ("expected", "got", "why", "rests on", "at", "waived", "run")


def print_report(report: Mapping[str, Any], width: int, *, err: bool = False) -> None:
    """Prints the plugin, each level's counts, the failed checks, and the level.

    Prints on stderr if ``err`` is set. Of checks with the same finding the first is shown, and the
    others are named.
    """
    for line in report_lines(report, width):
        click.echo(line, err=err)


def report_lines(report: Mapping[str, Any], width: int) -> Iterator[str]:
    """Yields the lines of a report, none wider than ``width`` unless a word is."""
    yield from _heading(report, width)
    yield ""
    yield from _levels(report)
    for group in group_alike(report):
        yield ""
        yield from finding_lines(group[0], width)
        if others := name_others(group):
            yield from _wrap(others, width, "  the same: ", " " * 12)
    for note in report["notes"]:
        yield ""
        yield from _wrap(f"note: {note}", width, "", "      ")
    yield ""
    yield from _wrap(_conclusion(report), width)
    yield from _wrap(describe_basis(report), width)
    yield from _wrap(report["not_shown"], width)


def _heading(report: Mapping[str, Any], width: int) -> Iterator[str]:
    plugin, client, kit = report["plugin"], report["client"], report["kit"]
    owner = f"{plugin['distribution']} {plugin['version']}".strip()
    where = f" ({owner or plugin['library'] or plugin['kind']})"
    yield from _wrap(f"{plugin['name']}{where if owner else ''}", width)
    if client:
        kinds = sorted({device["kind"] for device in client["devices"]})
        count = len(client["devices"])
        devices = f"{count} device{'s' * (count != 1)} ({', '.join(kinds)})"
        yield from _wrap(f"{client['platform']} {client['platform_version']}, {devices}", width)
    yield from _wrap(f"plugrt-sdk {kit['version']}, {kit['checks']} checks", width)
    if tolerances := describe_tolerances(report):
        yield from _wrap(f"tolerances declared: {tolerances}", width)


def _levels(report: Mapping[str, Any]) -> Iterator[str]:
    for level in Level:
        shown = ", ".join(
            click.style(f"{count} {verdict}", **_STYLES[verdict])
            for verdict, count in report["counts_of_levels"][str(int(level))].items()
            if count
        )
        yield f"  {int(level)} {level.name.capitalize():<9} {shown or 'no checks'}"


def finding_lines(row: Mapping[str, Any], width: int) -> Iterator[str]:
    """Yields the lines of one failed check."""
    verdict = row["verdict"]
    yield f"{click.style(verdict, **_STYLES[verdict])} {click.style(row['id'], bold=True)}"
    yield from _wrap(row["title"], width, "  ")
    waiver = row["waiver"]
    texts = (
        row["expected"], row["got"], row["why"], row["rests_on"], row["where"],
        f"{waiver['reason']} ({waiver['url']}), until {waiver['until']}" if waiver else "",
        row["reproduce"],
    )  # fmt: skip
    for label, text in zip(_LABELS, texts, strict=True):
        if text:
            yield from _wrap(text, width, f"  {label + ':':<10}", " " * 12)


def _conclusion(report: Mapping[str, Any]) -> str:
    counts = ", ".join(f"{count} {verdict}" for verdict, count in report["counts"].items() if count)
    text = f"{describe_level(report)[0].upper()}{describe_level(report)[1:]}. {counts}"
    return f"{text} in {report['seconds']:.1f} s."


def _wrap(text: str, width: int, first: str = "", rest: str | None = None) -> list[str]:
    return textwrap.wrap(
        text, max(width, 30), initial_indent=first,
        subsequent_indent=first if rest is None else rest,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
