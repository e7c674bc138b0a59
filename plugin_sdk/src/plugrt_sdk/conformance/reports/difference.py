"""`difference`: what changed between two reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from plugrt_sdk.conformance.reports.report import describe_level
from plugrt_sdk.conformance.verdict import Verdict


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Returns a line for each change of the level, the provenance or a verdict; none if alike."""
    return [*_headers(before, after), *_verdicts(before, after)]


def is_worse(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether a check that was not bad before is bad after."""
    old = {row["id"]: Verdict(row["verdict"]) for row in before["checks"]}
    return any(
        Verdict(row["verdict"]).is_bad and not old.get(row["id"], Verdict.NOT_RUN).is_bad
        for row in after["checks"]
    )


def _headers(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    if describe_level(before) != describe_level(after):
        yield f"{describe_level(before)} -> {describe_level(after)}"
    for part in ("kit", "plugin", "machine", "settings"):
        old, new = before[part], after[part]
        for name in sorted({*old, *new}):
            if old.get(name) != new.get(name):
                yield f"{part}.{name}: {old.get(name)} -> {new.get(name)}"


def _verdicts(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    old = {row["id"]: row for row in before["checks"]}
    new = {row["id"]: row for row in after["checks"]}
    for name in old.keys() - new.keys():
        yield f"{name}: {old[name]['verdict']} -> not in the kit"
    for name, row in new.items():
        was = old[name]["verdict"] if name in old else "not in the kit"
        if was != row["verdict"]:
            got = f" ({row['got']})" if row["got"] else ""
            yield f"{name}: {was} -> {row['verdict']}{got}"
