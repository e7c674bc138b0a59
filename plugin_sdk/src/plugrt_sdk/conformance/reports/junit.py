"""`junit`: a report as JUnit XML, for CI services."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree as Tree

from plugrt_sdk.conformance.reports.report import describe_level, describe_tolerances
from plugrt_sdk.conformance.verdict import Verdict

_SKIPPED = (Verdict.NO_HARDWARE, Verdict.NOT_RUN, Verdict.WAIVED)
_NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(report: Mapping[str, Any]) -> str:
    """Returns the XML: a test case for each check, with level and verdict as properties.

    FAIL is a failure, CRASH and TIMEOUT are errors; NOT-RUN and WAIVED are skipped.
    """
    rows, counts = report["checks"], report["counts"]
    suite = Tree.Element(
        "testsuite", name=f"plugrt conform {report['plugin']['name']}", tests=str(len(rows)),
        failures=str(counts[Verdict.FAIL]),
        errors=str(counts[Verdict.CRASH] + counts[Verdict.TIMEOUT]),
        skipped=str(sum(counts[verdict] for verdict in _SKIPPED)), time=f"{report['seconds']:.3f}",
        timestamp=report["run"]["started"],
    )  # fmt: skip
    _properties(suite, {
        "level": describe_level(report), "kit": report["kit"]["version"],
        "manifest_sha256": report["kit"]["manifest_sha256"], "command": report["run"]["command"],
        "tolerances": describe_tolerances(report),
    })  # fmt: skip
    for row in rows:
        _case(suite, row)
    root = Tree.Element("testsuites")
    root.append(suite)
    Tree.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{Tree.tostring(root, "unicode")}\n'


def _case(suite: Tree.Element, row: Mapping[str, Any]) -> None:
    chapter, _, name = row["id"].partition(".")
    case = Tree.SubElement(
        suite, "testcase", classname=f"plugrt.conformance.{chapter}", name=name,
        time=f"{row['seconds']:.4f}",
    )  # fmt: skip
    _properties(case, {key: row[key] for key in ("id", "verdict", "level", "title", "rests_on")})
    verdict = Verdict(row["verdict"])
    if verdict in _SKIPPED:
        waiver = row["waiver"]
        said = f"{waiver['reason']} ({waiver['url']})" if waiver else row["got"]
        Tree.SubElement(case, "skipped", message=_plain(f"{verdict}: {said}"))
    elif verdict.is_bad:
        kind = "failure" if verdict is Verdict.FAIL else "error"
        found = Tree.SubElement(case, kind, type=str(verdict), message=_plain(row["got"]))
        found.text = _plain(
            f"expected: {row['expected']}\ngot: {row['got']}\nwhy: {row['why']}\n"
            f"rests on: {row['rests_on']}\nat: {row['where']}\nrun: {row['reproduce']}\n"
        )


def _properties(parent: Tree.Element, values: Mapping[str, Any]) -> None:
    holder = Tree.SubElement(parent, "properties")
    for name, value in values.items():
        Tree.SubElement(holder, "property", name=name, value=_plain(str(value)))


def _plain(text: str) -> str:
    """Removes the characters that XML cannot contain."""
    return _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text)
