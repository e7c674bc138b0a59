"""`read_report`: reads a report from the file of an earlier run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plugrt.base.files import parse_json
from plugrt_sdk.conformance.check import Level
from plugrt_sdk.conformance.reports.report import FORMAT
from plugrt_sdk.conformance.verdict import Verdict

_PARTS = ("kit", "plugin", "machine", "settings")
_ROW = ("id", "verdict", "got")


def read_report(path: Path) -> dict[str, Any]:
    """Returns a report; raises `ValueError` with the reason if the file is not one."""
    try:
        found = parse_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} is no report: {error}") from error
    if not isinstance(found, dict) or found.get("format") not in (1, FORMAT):
        raise ValueError(f"{path} is no report of plugrt conform of format {FORMAT}")
    if fault := _find_fault(found):
        raise ValueError(f"{path} is no report that plugrt conform wrote: {fault}")
    return found


def _find_fault(report: dict[str, Any]) -> str:
    """Returns the keys that a comparison needs and that are missing; empty if there are none."""
    for part in _PARTS:
        if not isinstance(report.get(part), dict):
            return f"{part} is no object"
    level, waivers = report.get("level", ""), report.get("level_waivers")
    if not (level is None or (isinstance(level, int) and 0 <= level <= max(Level))):
        return f"level is {level!r}"
    if not isinstance(waivers, int):
        return f"level_waivers is {waivers!r}"
    if not isinstance(rows := report.get("checks"), list):
        return "checks is no list"
    for number, row in enumerate(rows):
        if not isinstance(row, dict) or not all(isinstance(row.get(k), str) for k in _ROW):
            return f"checks[{number}] lacks one of {', '.join(_ROW)}"
        if row["verdict"] not in set(Verdict):
            return f"{row['id']} has the verdict {row['verdict']!r}"
    return ""
