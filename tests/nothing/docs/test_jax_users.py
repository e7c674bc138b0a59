"""The page for JAX users agrees with the docstrings of the tests."""

from __future__ import annotations

from support.markdown import load_script

generate = load_script("docs/generate/jax_users.py")


def test_the_page_is_current() -> None:
    assert generate.PATH.read_text(encoding="utf-8") == generate.page(), "make docs"


def test_the_page_has_what_is_the_same_and_what_differs() -> None:
    found = generate.statements()
    assert sum(s.differs for s in found) >= 10
    assert sum(not s.differs for s in found) >= 10
    page = generate.page()
    for statement in found:
        assert f"`{statement.test}`" in page
        assert all(cell in page for cell in statement.cells)
