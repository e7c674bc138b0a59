"""The HTML scorecard and the badge: their contents, and their filters in a browser."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import click
import pytest

from plugrt_sdk.conformance import provenance
from plugrt_sdk.conformance.check import Demand, Level
from plugrt_sdk.conformance.reports.badge import badge
from plugrt_sdk.conformance.reports.findings import group_alike
from plugrt_sdk.conformance.reports.markdown import markdown
from plugrt_sdk.conformance.reports.readme import Slot
from plugrt_sdk.conformance.reports.report import make_report
from plugrt_sdk.conformance.reports.scorecard import scorecard
from plugrt_sdk.conformance.reports.terminal import report_lines
from plugrt_sdk.conformance.runner import Runner
from plugrt_sdk.conformance.target import Target
from plugrt_sdk.conformance.verdict import Result, Verdict
from plugrt_sdk.conformance.waivers import Waivers
from support import chromium, kit
from support.apart import runs_apart

pytestmark = runs_apart("sdk")

HOSTILE = "</td><script>document.title = 'broken'</script>&amp;"
FAILED, CRASHED = "buffers.put_get.scalar", "programs.add"


PLUGIN = {
    "kind": "object", "name": HOSTILE, "options": {}, "distribution": "", "version": HOSTILE,
    "entry_point": "", "library": "", "library_sha256": "", "api_version": "", "hardware": HOSTILE,
}  # fmt: skip


def make(verdicts: dict[str, Verdict]) -> dict[str, Any]:
    """Returns the report of a run with these verdicts, and PASS everywhere else."""
    results = {
        check: Result(verdicts.get(check, Verdict.PASS), got=HOSTILE) for check in kit.checks()
    }
    facts = {
        "kit": provenance.describe_kit_for_storage(), "plugin": PLUGIN,
        "machine": {"python": HOSTILE},
        "run": {"command": HOSTILE, "started": "2026-01-01", "git": {}}, "seconds": 1.0,
    }  # fmt: skip
    return make_report(Runner(Target("object", HOSTILE), []), results, Waivers(), facts)


REFUSED = {check: Verdict.REFUSED for check, found in kit.checks().items() if found.level == 4}
"""The verdicts of level 4 for a client of one device without faults."""
BAD = {FAILED: Verdict.FAIL, CRASHED: Verdict.CRASH}


class Tags(HTMLParser):
    """Counts the elements of a page, as a browser parses it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: dict[str, int] = {}
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found[tag] = self.found.get(tag, 0) + 1


@pytest.mark.parametrize("verdict", [Verdict.REFUSED, Verdict.WAIVED])
def test_a_level_that_was_not_seen_is_not_granted(verdict: Verdict) -> None:
    seen = {check: REFUSED[check] for check in REFUSED if check != "scales.replicas"}
    assert make(seen)["level"] == 4, "what is not declared may be refused"
    report = make({**seen, "scales.replicas": verdict})
    assert (report["level"], report["level_waivers"]) == (3, 0)
    said = (
        f"Level 4 (Scales) was not seen: nothing of it is wrong, but scales.replicas is {verdict}"
    )
    slot = "\n".join(Slot(Path("README.md")).lines(report, None, None))
    terminal = " ".join(" ".join(report_lines(report, 96)).split())
    for shown in (terminal, scorecard(report), markdown(report).replace("\\", ""), slot):
        assert said in shown
    assert make({**seen, FAILED: Verdict.FAIL})["not_shown"] == "", "more is missing than that"


def test_advice_and_the_raw_table_are_no_part_of_the_levels() -> None:
    advice = [c for c, found in kit.checks().items() if found.demand is Demand.PLUGRT]
    of_plugins = {c for c in advice if kit.checks()[c].level is not Level.INSTALLS}
    assert 10 < len(of_plugins) < len(advice)
    fails = dict.fromkeys(of_plugins, Verdict.FAIL)
    assert make(fails)["level"] == 4
    installs = next(c for c in advice if c not in of_plugins)
    assert make({installs: Verdict.FAIL})["level"] is None
    in_table = next(
        c for c, found in kit.checks().items() if found.needs.has_table and found.level == 2
    )
    report = make({in_table: Verdict.FAIL})
    assert (report["level"], report["level_without_table"]) == (1, 4)


def test_findings_with_one_cause_are_folded() -> None:
    same = dict.fromkeys(list(REFUSED)[:12], Verdict.FAIL)
    report = make({**same, CRASHED: Verdict.CRASH, FAILED: Verdict.FAIL})
    row = next(row for row in report["checks"] if row["id"] == FAILED)
    row["got"] = "another"
    first, *others = same
    lines = [click.unstyle(line) for line in report_lines(report, 96)]
    heads = [line for line in lines if re.match("FAIL|CRASH", line)]
    assert heads == [f"FAIL {FAILED}", f"FAIL {first}", f"CRASH {CRASHED}"]
    shown = " ".join(" ".join(lines).split())
    assert f"the same: 11 other checks: {', '.join(others[:8])} and 3 more that" in shown
    page = markdown(report).replace("\\", "")
    assert re.findall("^## [FC].*", page, re.M) == [
        f"## FAIL: `{FAILED}`", f"## FAIL: `{first}`", f"## CRASH: `{CRASHED}`"
    ]  # fmt: skip
    assert f"- The same was found by 11 other checks: {', '.join(others)}\n" in page
    for row in report["checks"]:
        row["waiver"] = {"reason": "r", "url": "u", "until": row["id"]}
    assert all(f"until {name}" in " ".join(report_lines(report, 999)) for name in same)


def test_findings_that_differ_in_values_alone_are_said_once() -> None:
    ids = ["operations.add.float32", "operations.add.int8", "operations.subtract.int8"]
    report = make(dict.fromkeys(ids, Verdict.FAIL))
    for row in report["checks"]:
        _, operation, *rest = row["id"].split(".")
        row["got"] = f"{operation} of {rest[-1:]}: {len(row['id'])}.5, nan"
    found = [[row["id"] for row in group] for group in group_alike(report)]
    assert found == [ids[:2], ids[2:]]


def test_the_page_shows_texts_as_they_are_and_fetches_nothing() -> None:
    html = scorecard(make(BAD))
    assert Tags(html).found["script"] == 1
    assert Tags(html).found["details"] == len(kit.checks())
    assert html.count('open="open"') == len(BAD), "what failed is unfolded"
    assert not re.search(r"(src|href)=", html)
    assert "&lt;/td&gt;&lt;script&gt;" in html


@pytest.mark.skipif(chromium.PROGRAM is None, reason="needs Chromium")
def test_the_filters_of_the_page(tmp_path: Path) -> None:
    file = tmp_path / "card.html"
    file.write_text(scorecard(make(BAD)), "utf-8")
    total = len(kit.checks())
    level_1 = sum(check.level == 1 for check in kit.checks().values())
    with chromium.page(tmp_path / "profile") as page:
        for width in (390, 1200):
            page.open(file, width)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            seen = [shown(page)]
            for button in ("level='1'", "verdict='FAIL'", "verdict='CRASH'", "level=''"):
                key, _, value = button.partition("=")
                page.click(f"button[data-key={key}][data-value={value}]")
                seen.append(shown(page))
            assert [len(names) for names in seen] == [total, level_1, 1, 0, 1]
            assert (seen[2], seen[4]) == ([FAILED], [CRASHED])
            pressed = "[...document.querySelectorAll('[aria-pressed=true]')].map(b => b.innerText)"
            assert page.evaluate(pressed) == ["All", "CRASH 1"]
            page.screenshot(picture := tmp_path / f"{width}.png")
            assert picture.read_bytes()[:4] == b"\x89PNG"
        assert page.evaluate("document.title") != "broken"


def shown(page: chromium.Page) -> list[str]:
    """Returns the ids of the visible checks."""
    rows = "[...document.querySelectorAll('#checks tbody tr')].filter(row => row.offsetHeight)"
    found: list[str] = page.evaluate(f"{rows}.map(row => row.querySelector('code').innerText)")
    return found


@pytest.mark.parametrize(
    ("verdicts", "said", "colour"),
    [
        ({}, "level 4 (Scales)", "#18794e"),
        ({CRASHED: Verdict.WAIVED}, "level 4 (Scales) with 1 waiver", "#8a5a00"),
        (REFUSED, "level 3 (Behaves)", "#18794e"),
        (BAD, "level 0 (Installs)", "#8a5a00"),
        ({"client.create": Verdict.FAIL, "host.plugin.valid": Verdict.FAIL}, "no level", "#b42318"),
    ],
)
def test_the_badge(verdicts: dict[str, Verdict], said: str, colour: str) -> None:
    picture = ElementTree.fromstring(badge(make(verdicts)))
    space = "{http://www.w3.org/2000/svg}"
    assert [text.text for text in picture.iter(f"{space}text")] == ["PJRT conformance", said]
    assert picture.findtext(f"{space}title") == f"PJRT conformance of {HOSTILE}: {said}"
    assert colour in {rect.get("fill") for rect in picture.iter(f"{space}rect")}
