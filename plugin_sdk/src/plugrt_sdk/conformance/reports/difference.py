"""`difference`: the changes between two reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from plugrt_sdk.conformance.reports.findings import Row
from plugrt_sdk.conformance.reports.report import describe_level
from plugrt_sdk.conformance.verdict import Verdict

_RANKS: Mapping[str, int] = {
    Verdict.PASS: 0, Verdict.REFUSED: 1, Verdict.NO_HARDWARE: 2, Verdict.NOT_RUN: 2,
    Verdict.WAIVED: 3, Verdict.FAIL: 4, Verdict.CRASH: 4, Verdict.TIMEOUT: 4,
}  # fmt: skip
"""The order of verdicts from good to bad: a refusal at least names what is missing, and a statement
that was not tried may be true."""


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Formats each change of the level, the provenance or a verdict as a line; empty if equal."""
    return [*_headers(before, after), *_verdicts(before, after)]


def is_worse(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether a level is lower or has more waivers, or a check's verdict is worse.

    `_RANKS` orders the verdicts. A new check counts if it is bad; a removed one is shown, and does
    not count.
    """
    return _standing(after) > _standing(before) or any(
        _RANKS[row["verdict"]] > _RANKS[was["verdict"]] if was else Verdict(row["verdict"]).is_bad
        for was, row in _pairs(before, after)
        if row
    )


def _standing(report: Mapping[str, Any]) -> tuple[int, int]:
    """Returns a pair that is greater for a report that grants less."""
    level = -1 if report["level"] is None else report["level"]
    return -level, report["level_waivers"]


def _headers(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    if describe_level(before) != describe_level(after):
        yield f"{describe_level(before)} -> {describe_level(after)}"
    for part in ("kit", "plugin", "machine", "settings"):
        old, new = before[part], after[part]
        for name in sorted({*old, *new}):
            if old.get(name) != new.get(name):
                yield f"{part}.{name}: {old.get(name)} -> {new.get(name)}"


def _verdicts(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for was, row in _pairs(before, after):
        name = (row or was)["id"]
        old, new = (found["verdict"] if found else "not in the kit" for found in (was, row))
        if old != new:
            got = f" ({row['got']})" if row and row["got"] else ""
            yield f"{name}: {old} -> {new}{got}"


def _pairs(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[Row, Row]]:
    """Yields both reports' rows of each check, an empty row where a report lacks it.

    First the removed checks, then the checks of ``after``, each in its report's order.
    """
    old = {row["id"]: row for row in before["checks"]}
    new = {row["id"]: row for row in after["checks"]}
    yield from ((row, {}) for name, row in old.items() if name not in new)
    yield from ((old.get(name, {}), row) for name, row in new.items())
