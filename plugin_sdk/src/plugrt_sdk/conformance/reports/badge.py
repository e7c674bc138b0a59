"""`badge`: the level of a report as an SVG picture, for a README."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plugrt.cli.html import Element, element
from plugrt_sdk.conformance.reports.report import describe_level
from plugrt_sdk.conformance.verdict import Verdict

_LABEL = "PJRT conformance"
_NARROW = frozenset(" ()fijlrtI1")
_GOOD, _MIDDLE, _BAD, _GREY = "#18794e", "#8a5a00", "#b42318", "#444c56"


def badge(report: Mapping[str, Any]) -> str:
    """Returns an SVG: green without bad verdicts and waivers, red without a level."""
    said = describe_level(report)
    left, right = (_width(text) for text in (_LABEL, said))
    title = f"{_LABEL} of {report['plugin']['name']}: {said}"
    return element(
        "svg",
        element("title", title),
        element("rect", width=left + right, height=20, rx=3, fill=_GREY),
        element("rect", x=left, width=right, height=20, rx=3, fill=_colour(report)),
        element("rect", x=left, width=3, height=20, fill=_colour(report)),
        element(
            "g", _text(_LABEL, 0, left), _text(said, left, right), fill="#fff",
            font_family="Verdana, DejaVu Sans, sans-serif", font_size=11,
        ),
        xmlns="http://www.w3.org/2000/svg", width=left + right, height=20, role="img",
        aria_label=title,
    ) + "\n"  # fmt: skip


def _colour(report: Mapping[str, Any]) -> str:
    if report["level"] is None:
        return _BAD
    bad = any(report["counts"][verdict] for verdict in Verdict if verdict.is_bad)
    return _MIDDLE if bad or report["level_waivers"] else _GOOD


def _text(text: str, x: int, width: int) -> Element:
    return element("text", text, x=x + 6, y=14, textLength=width - 12)


def _width(text: str) -> int:
    """Returns the width in pixels of a text of 11 px with its margins; the SVG stretches to it."""
    return round(sum(4.3 if letter in _NARROW else 7.3 for letter in text)) + 12
