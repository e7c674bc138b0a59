"""``plugrt conform --diff``: the changes between two reports, and whether they are worse."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from plugrt_sdk.conformance.reports.difference import difference, is_worse
from plugrt_sdk.conformance.reports.outputs import Outputs
from plugrt_sdk.conformance.verdict import Verdict
from support import kit

GONE = [f"gone.{number}" for number in range(20)]


def report(
    verdicts: Mapping[str, str], level: int | None = 4, waivers: int = 0, **kit: str
) -> dict[str, Any]:
    """Returns the keys of a report that a comparison reads."""
    rows = [{"id": name, "verdict": verdict, "got": ""} for name, verdict in verdicts.items()]
    return {
        "format": 1, "kit": kit, "plugin": {}, "machine": {}, "settings": {}, "level": level,
        "level_waivers": waivers, "checks": rows,
    }  # fmt: skip


def compare(before: Any, after: Any) -> Result:
    for name, content in (("a.json", before), ("b.json", after)):
        text = content if isinstance(content, str) else json.dumps(content)
        Path(name).write_text(text)
    return kit.conform("--diff", "a.json", "b.json")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_report_is_as_good_as_itself() -> None:
    same = report({str(verdict): verdict for verdict in Verdict})
    assert difference(same, same) == []
    assert compare(same, same).return_value == 0


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        (report({}), report({}, level=3), "level 4 (Scales) -> level 3 (Behaves)"),
        (report({}, level=0), report({}, level=None), "level 0 (Installs) -> no level"),
        (
            report({}, level=2),
            report({}, level=2, waivers=1),
            "level 2 (Computes) -> level 2 (Computes) with 1 waiver",
        ),
        (report({"a.b": "PASS"}), report({"a.b": "FAIL"}), "a.b: PASS -> FAIL"),
        (report({"a.b": "PASS"}), report({"a.b": "REFUSED"}), "a.b: PASS -> REFUSED"),
        (report({"a.b": "PASS"}), report({"a.b": "NOT-RUN"}), "a.b: PASS -> NOT-RUN"),
        (report({"a.b": "REFUSED"}), report({"a.b": "WAIVED"}), "a.b: REFUSED -> WAIVED"),
        (report({"a.b": "WAIVED"}), report({"a.b": "CRASH"}), "a.b: WAIVED -> CRASH"),
        (report({}), report({"a.b": "TIMEOUT"}), "a.b: not in the kit -> TIMEOUT"),
    ],
)
def test_differences_that_are_worse_in_one_direction(
    before: dict[str, Any], after: dict[str, Any], line: str
) -> None:
    found = compare(before, after)
    assert (found.return_value, found.output) == (1, f"{line}\n")
    assert compare(after, before).return_value == 0


@pytest.mark.parametrize(
    ("before", "after"), [("FAIL", "CRASH"), ("NO-HARDWARE", "NOT-RUN"), ("TIMEOUT", "FAIL")]
)
def test_a_verdict_that_is_no_better_or_worse(before: str, after: str) -> None:
    old, new = report({"a.b": before}), report({"a.b": after})
    assert difference(old, new) == [f"a.b: {before} -> {after}"]
    assert not is_worse(old, new)
    assert not is_worse(new, old)


def test_checks_of_one_kit_are_listed_in_its_order() -> None:
    old = report(dict.fromkeys([*GONE, "kept.a"], "PASS"), version="1")
    new = report({"new.b": "PASS", "kept.a": "PASS", "new.a": "REFUSED"}, version="2")
    assert difference(old, new) == [
        "kit.version: 1 -> 2",
        *(f"{name}: PASS -> not in the kit" for name in GONE),
        "new.b: not in the kit -> PASS",
        "new.a: not in the kit -> REFUSED",
    ]
    assert not is_worse(old, new)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "is no report"),
        ("[]", "of format 2"),
        ('{"format": 3, "checks": []}', "of format 2"),
        ('{"format": 1, "checks": []}', "kit is no object"),
        ({**report({}), "level": 5}, "level is 5"),
        ({**report({}), "level": "4"}, "level is '4'"),
        ({**report({}), "level_waivers": None}, "level_waivers is None"),
        ({**report({}), "checks": {}}, "checks is no list"),
        ({**report({}), "checks": ["a.b"]}, "checks[0] lacks one of id, verdict, got"),
        (report({"a.b": "MAYBE"}), "a.b has the verdict 'MAYBE'"),
    ],
)
def test_a_file_that_is_no_report(content: Any, words: str) -> None:
    found = compare(report({}), content)
    assert getattr(found.exception, "exit_code", None) == 2
    assert "b.json is no report" in str(found.exception)
    assert words in str(found.exception)


def test_a_report_of_attributes_that_are_no_numbers_is_json_and_compares_alike() -> None:
    told = report({"a.b": "PASS"}) | {"client": {"attributes": {"a": float("nan")}, "b": [-1e999]}}
    paths = Path("a.json"), Path("b.json")
    for path in paths:
        assert not list(Outputs({"json": path}).write(told))
    read = json.loads(paths[0].read_text(), parse_constant=pytest.fail)
    assert read["client"] == {"attributes": {"a": "nan"}, "b": ["-inf"]}
    asked = ["--diff", *map(str, paths)]
    assert kit.conform(*asked).return_value == 0
