"""The reports and reasons that `nox -s array_api` reads, and the page made of the reasons."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.markdown import load_script

page = load_script("docs/generate/array_api.py")
tool = load_script("tools/test_array_api.py")

REPORT = """<testsuites><testsuite>
<testcase classname="array_api_tests.test_linalg" name="test_qr[a.b]"/>
<testcase classname="array_api_tests.test_linalg" name="test_svd"><failure/></testcase>
<testcase classname="array_api_tests.test_fft" name="test_fft"><error/></testcase>
<testcase classname="array_api_tests.test_fft" name="test_ifft"><skipped/></testcase>
</testsuite></testsuites>"""
OUTCOMES = {
    "test_linalg.py::test_qr[a.b]": "passed",
    "test_linalg.py::test_svd": "failed",
    "test_fft.py::test_fft": "failed",
    "test_fft.py::test_ifft": "skipped",
}
REASONS = """
[[failures]]
tests = ["test_linalg.py::test_svd", "test_other.py::test_of_a_file_that_did_not_run"]
[[failures]]
platforms = ["numpy"]
tests = ["test_fft.py::test_fft"]
"""


def test_a_report_is_read(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    assert tool.read_report(report) == OUTCOMES


def test_a_failure_needs_a_reason_on_its_platform() -> None:
    assert tool.find_mistakes(OUTCOMES, tool.read_reasons(REASONS, "numpy")) == []
    assert tool.find_mistakes(OUTCOMES, tool.read_reasons(REASONS, "cpu")) == [
        "failed without a reason: test_fft.py::test_fft"
    ]


@pytest.mark.parametrize(
    ("name", "sometimes", "mistake"),
    [
        ("test_linalg.py::test_qr[a.b]", False, "has a reason and passed"),
        ("test_linalg.py::test_qr[a.b]", True, None),
        ("test_fft.py::test_ifft", False, "has a reason and skipped"),
        ("test_linalg.py::test_qr", False, "not in the suite"),
        ("test_linalg.py::test_qr", True, "not in the suite"),
    ],
)
def test_a_stale_reason_is_a_mistake(name: str, sometimes: bool, mistake: str | None) -> None:
    reasons = tool.read_reasons(REASONS, "numpy") | {name: sometimes}
    found = tool.find_mistakes(OUTCOMES, reasons)
    assert len(found) == (mistake is not None)
    assert all(mistake in line and line.endswith(f": {name}") for line in found if mistake)


def test_a_test_has_one_reason() -> None:
    twice = REASONS.replace("test_fft.py::test_fft", "test_linalg.py::test_svd")
    assert tool.read_reasons(twice, "cpu")
    with pytest.raises(ValueError, match="two reasons for test_linalg"):
        tool.read_reasons(twice, "numpy")


def test_the_page_is_in_step_with_the_reasons() -> None:
    text = page.REASONS.read_text(encoding="utf-8")
    assert page.PAGE.read_text(encoding="utf-8") == page.make_page(text)
    assert (tool.REASONS, tool.PLATFORMS) == (page.REASONS, page.PLATFORMS)
    assert f"{tool.EXAMPLES} random examples" in page.HEAD
    assert all(tool.read_reasons(text, platform) for platform in tool.PLATFORMS)
