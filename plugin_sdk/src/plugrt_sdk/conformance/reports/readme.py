"""`Slot`: the place in a README for a run's scorecard."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plugrt.errors import InvalidArgument
from plugrt_sdk.conformance.reports.findings import find_all
from plugrt_sdk.conformance.reports.markdown import verdict_table
from plugrt_sdk.conformance.reports.report import describe_level

BEGIN, END = "<!-- scorecard: begin -->", "<!-- scorecard: end -->"


@dataclass(frozen=True)
class Slot:
    """The lines of ``file`` between `BEGIN` and `END`."""

    file: Path

    def require(self) -> None:
        """Raises `InvalidArgument` unless the file has both marks once, in this order."""
        try:
            text = self.file.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidArgument(f"{self.file} cannot be read: {error}") from error
        if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
            raise InvalidArgument(
                f"{self.file} has no place for a scorecard: add the two lines {BEGIN} and {END}, "
                "once each"
            )

    def fill(self, report: Mapping[str, Any], badge: Path | None, page: Path | None) -> str:
        """Returns the file's text with a report's level and counts between the marks.

        ``badge`` is a picture to show, ``page`` the page that it links to.
        """
        lines = "\n".join(self.lines(report, badge, page))
        text = self.file.read_text("utf-8")
        return re.sub(f"(?s){BEGIN}.*{END}", lambda _: f"{BEGIN}\n{lines}\n{END}", text, count=1)

    def lines(
        self, report: Mapping[str, Any], badge: Path | None, page: Path | None
    ) -> Iterator[str]:
        """Yields the lines between the marks."""
        said = describe_level(report)
        shown = f"![PJRT conformance: {said}]({self._link(badge)})" if badge else f"**{said}**"
        yield f"[{shown}]({self._link(page)})" if page else shown
        yield ""
        yield from verdict_table(report)
        yield ""
        yield f"{_tested(report)} by plugrt-sdk {report['kit']['version']}."
        if report["not_shown"]:
            yield report["not_shown"]
        if bad := [f"`{row['id']}` ({row['verdict']})" for row in find_all(report)]:
            yield f"What does not hold: {', '.join(bad)}."

    def _link(self, target: Path) -> str:
        return Path(os.path.relpath(target.resolve(), self.file.resolve().parent)).as_posix()


def _tested(report: Mapping[str, Any]) -> str:
    """Returns the target and the day of the run."""
    plugin, day = report["plugin"], report["run"]["started"][:10]
    name = f"{plugin['distribution'] or plugin['name']} {plugin['version']}".strip()
    return f"{name}, on {day},"
