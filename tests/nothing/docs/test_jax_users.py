"""The page for JAX users is what the tests say of themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

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


def write(folder: Path, text: str) -> Path:
    path = folder / "tests/cpu/test_it.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return folder / "tests"


def test_modules_and_tests_speak_and_nothing_is_run(tmp_path: Path) -> None:
    folder = write(tmp_path, '''
"""About it.

Same as JAX: the one
thing.

Differs from JAX: a | b | c: d.
"""
raise SystemExit

class Tests:
    def test_in_a_class(self):
        """Same as JAX: the other."""

def test_it():
    """It does.

    Differs from JAX: x `y|z` | 1 | 2.
    """

def helper():
    """Same as JAX: no test."""
''')  # fmt: skip
    path = "tests/cpu/test_it.py"
    found = {(s.test, s.differs, s.cells) for s in generate.statements(folder)}
    assert found == {
        (path, False, ("the one thing",)),
        (path, True, ("a", "b", "c: d")),
        (f"{path}::test_in_a_class", False, ("the other",)),
        (f"{path}::test_it", True, ("x `y|z`", "1", "2")),
    }


def test_tests_that_say_the_same_share_a_row() -> None:
    same = [generate.Statement(test, False, ("it",)) for test in ("a.py", "b.py::test_c")]
    assert generate.rows(same) == "| it | `a.py`, `b.py::test_c` |"


@pytest.mark.parametrize(
    "text",
    ["Same as JAX: no full stop", "Same as JAX:.", "Same as JAX: a | b.",
     "Differs from JAX: a | b.", "Differs from JAX: a | b | c", "Differs from JAX: a |  | c."],
)  # fmt: skip
def test_a_paragraph_of_another_form_is_refused_with_its_test(tmp_path: Path, text: str) -> None:
    folder = write(tmp_path, f'def test_it():\n    """It.\n\n    {text}\n    """\n')
    with pytest.raises(ValueError, match=r"tests/cpu/test_it.py::test_it: .* is not of the form"):
        generate.statements(folder)
