"""`find_all` and `group_alike`: the failed checks of a report."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from plugrt_sdk.conformance.verdict import Verdict

Row = Mapping[str, Any]
_MOST_IDS = 8
_VALUES = re.compile(
    r"(\b((u?int|b?float|complex)\d\w*|bool|nan|inf|True|False|0x\w+)|[-+]?\d[\w.+-]*|[][(),.\s])+"
)
"""Matches numbers, dtypes and the separators between them."""


def find_all(report: Mapping[str, Any]) -> list[Row]:
    """Returns the failed checks, including waived ones."""
    return [
        row
        for row in report["checks"]
        if Verdict(row["verdict"]).is_bad or row["verdict"] == Verdict.WAIVED
    ]


def group_alike(report: Mapping[str, Any]) -> Sequence[Sequence[Row]]:
    """Groups failed checks by cause.

    Checks are grouped if their findings have the same words, or if one line of one chapter found
    them in words that differ only in numbers, values and dtypes. A waived check is alone, since its
    waiver is its own.
    """
    groups: list[list[Row]] = []
    known: dict[tuple[str, ...], list[Row]] = {}
    for row in find_all(report):
        own = row["id"] if row["waiver"] else ""
        same = (row["verdict"], row["expected"], row["got"], own)
        chapter = own or ".".join(row["id"].split(".")[:2])
        words = (_VALUES.sub("#", row[key]) for key in ("expected", "got"))
        alike = (row["verdict"], row["where"], chapter, *words)
        group = known.get(same) or known.get(alike)
        if group is None:
            groups.append(group := [])
        group.append(row)
        known[same] = known[alike] = group
    return groups


def name_others(group: Sequence[Row], most: int = _MOST_IDS) -> str:
    """Formats how many checks of a group follow the first, and which; empty if there are none."""
    ids = [row["id"] for row in group[1:]]
    return f"{len(ids)} other check{'s' * (len(ids) > 1)}: {name_some(ids, most)}" if ids else ""


def name_some(ids: Sequence[str], most: int = _MOST_IDS) -> str:
    """Formats the first ids, and the number of others."""
    more = len(ids) - most
    rest = f" and {more} more that the JSON report names" if more > 0 else ""
    return f"{', '.join(ids[:most])}{rest}"
