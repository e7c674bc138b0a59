"""The support tables agree with the capabilities that the backends declare."""

from __future__ import annotations

from support.markdown import ROOT, load_script
from support.xla_cpu import needs_library

pytestmark = needs_library


def test_the_tables_are_current() -> None:
    for page, made in load_script("docs/generate/support.py").pages().items():
        assert made == page.read_text(encoding="utf-8"), f"run `make docs`: {page} is out of date"


def test_undeclared_capabilities_are_no_in_the_table() -> None:
    page = (ROOT / "docs/platforms.md").read_text(encoding="utf-8")
    [row] = [line for line in page.splitlines() if "how much of its memory is in use" in line]
    assert row.split("|")[2].strip() == "no", "jaxlib's cpu client has no memory statistics"
