"""docs/backend.md agrees with the docstrings of the SDK."""

from __future__ import annotations

from plugrt_sdk.declaration import OPTIONAL
from support.markdown import ROOT, load_script


def test_the_page_is_made_from_the_docstrings() -> None:
    page = load_script("docs/generate/backend.py").page()
    assert (ROOT / "docs/backend.md").read_text(encoding="utf-8") == page, "make docs"
    assert [name for name in OPTIONAL if f"### `{name}`" not in page] == []
