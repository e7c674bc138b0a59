"""`markdown`: a report for a pull request or a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from plugrt_sdk.conformance.check import Level
from plugrt_sdk.conformance.operation_cases import MLIR_NAMES
from plugrt_sdk.conformance.reports.findings import Row, group_alike, name_others
from plugrt_sdk.conformance.reports.operation_matrix import LEGEND, operation_matrix
from plugrt_sdk.conformance.reports.report import (
    describe_basis,
    describe_level,
    describe_provenance,
)
from plugrt_sdk.conformance.verdict import Verdict


def markdown(report: Mapping[str, Any]) -> str:
    """Returns the level, a table of verdicts, the failed checks, and the provenance."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Mapping[str, Any]) -> Iterator[str]:
    yield f"# Conformance of {_text(report['plugin']['name'])}: {describe_level(report)}"
    yield ""
    for text in filter(None, (describe_basis(report), report["not_shown"])):
        yield _text(text)
        yield ""
    yield from verdict_table(report)
    for group in group_alike(report):
        yield from _finding(group)
    for note in report["notes"]:
        yield ""
        yield f"Note: {_text(note)}"
    yield from _operations(report)
    yield ""
    yield "## Provenance"
    yield ""
    for name, value in describe_provenance(report):
        yield f"- {name}: {_text(value)}"


def verdict_table(report: Mapping[str, Any]) -> Iterator[str]:
    """Yields the lines of a table: the number of checks of each level with each verdict."""
    verdicts = [v for v in Verdict if report["counts"][v]]
    yield f"| Level | {' | '.join(verdicts)} |"
    yield f"| :-- |{' --: |' * len(verdicts)}"
    for level in Level:
        counts = report["counts_of_levels"][str(int(level))]
        shown = (str(counts[verdict] or "") for verdict in verdicts)
        yield f"| {int(level)} {level.name.capitalize()} | {' | '.join(shown)} |"


def _operations(report: Mapping[str, Any]) -> Iterator[str]:
    dtypes, lines = operation_matrix(report)
    if not lines:
        return
    yield from ("", "## Operations by dtype and rank", "", LEGEND, "")
    yield f"| operation | {' | '.join(_text(MLIR_NAMES[dtype]) for dtype in dtypes)} | ranks |"
    yield f"| :-- |{' :-: |' * len(dtypes)} :-- |"
    for line in lines:
        yield f"| {_text(line.operation)} | {' | '.join(line.marks)} | {line.ranks} |"


def _finding(group: Sequence[Row]) -> Iterator[str]:
    row = group[0]
    yield ""
    yield f"## {row['verdict']}: `{row['id']}`"
    yield ""
    yield _text(row["title"])
    yield ""
    for label, key in (("Expected", "expected"), ("Got", "got"), ("Why it matters", "why"),
                       ("Rests on", "rests_on")):  # fmt: skip
        if row[key]:
            yield f"- {label}: {_text(row[key])}"
    if row["waiver"]:
        waiver = row["waiver"]
        yield f"- Waived until {waiver['until']}: {_text(waiver['reason'])} <{waiver['url']}>"
    if others := name_others(group, most=len(group)):
        yield f"- The same was found by {_text(others)}"
    yield ""
    yield f"```\n{row['reproduce']}\n```"


_SPECIAL = str.maketrans({c: f"\\{c}" for c in "\\`*_[]<>|#"})


def _text(value: object) -> str:
    """Escapes a text for Markdown, and joins its lines."""
    return " ".join(str(value).translate(_SPECIAL).split())
