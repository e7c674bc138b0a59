"""The README's table of what works on what is what the backends declare today."""

from __future__ import annotations

from support.markdown import ROOT, load_script
from support.xla_cpu import needs_library

pytestmark = needs_library


def test_the_table_is_current() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    made = load_script("docs/generate/support.py").page(readme)
    assert made == readme, "run `make docs`: the support table in README.md is out of date"


def test_what_is_not_declared_is_no_in_the_table() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    [row] = [line for line in readme.splitlines() if "how much of its memory is in use" in line]
    assert row.split("|")[2].strip() == "no", "jaxlib's cpu client has no memory statistics"
