"""What `make test-array-api` reads and refuses, and the page of what fails there."""

from __future__ import annotations

from pathlib import Path

from support.markdown import load_script

page = load_script("docs/generate/array_api.py")
tool = load_script("tools/test_array_api.py")

REPORT = """<testsuites><testsuite>
<testcase classname="array_api_tests.test_linalg" name="test_qr[a.b]"/>
<testcase classname="array_api_tests.test_linalg" name="test_svd"><failure/></testcase>
<testcase classname="array_api_tests.test_fft" name="test_fft"><error/></testcase>
<testcase classname="array_api_tests.test_fft" name="test_ifft"><skipped/></testcase>
</testsuite></testsuites>"""
REASONS = r"""
[[failures]]
reason = "for a reason"
jax = "too"
tests = ['test_linalg.py::test_s\w+']
"""


def test_a_failure_without_a_reason(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    outcomes = tool.read_report(report)
    assert outcomes == {
        "test_linalg.py::test_qr[a.b]": "passed",
        "test_linalg.py::test_svd": "failed",
        "test_fft.py::test_fft": "failed",
        "test_fft.py::test_ifft": "skipped",
    }
    assert tool.unexplained(outcomes, REASONS) == ["test_fft.py::test_fft"]
    assert tool.unexplained({"test_linalg.py::test_svd[1]": "failed"}, REASONS)  # the whole name


def test_the_page_is_that_of_the_reasons() -> None:
    text = page.REASONS.read_text()
    assert page.PAGE.read_text() == page.make_page(text)
    assert tool.REASONS == page.REASONS
    assert f"{tool.LEAST:,} tests" in page.HEAD
    assert f"{tool.EXAMPLES} random examples" in page.HEAD
    # Real numbers have no reason to fail: the pattern of complex ones does not cover them.
    name = "test_special_cases.py::test_unary[exp(x_i is +infinity) -> +infinity]"
    assert tool.unexplained({name: "failed"}, text) == [name]
