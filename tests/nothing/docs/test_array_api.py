"""The reports and reasons that `nox -s array_api` reads, and the page made of the reasons."""

from __future__ import annotations

from support.markdown import load_script

page = load_script("docs/generate/array_api.py")
tool = load_script("tools/test_array_api.py")

REASONS = """
[[failures]]
tests = ["test_linalg.py::test_svd", "test_other.py::test_of_a_file_that_did_not_run"]
[[failures]]
platforms = ["numpy"]
tests = ["test_fft.py::test_fft"]
"""


def test_the_chapter_states_what_the_tool_reads() -> None:
    text = page.REASONS.read_text(encoding="utf-8")
    assert (tool.REASONS, tool.PLATFORMS) == (page.REASONS, page.PLATFORMS)
    assert f"{tool.EXAMPLES} random examples" in page.HEAD
    assert all(tool.read_reasons(text, platform) for platform in tool.PLATFORMS)
