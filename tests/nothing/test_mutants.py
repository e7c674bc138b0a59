"""`tools/mutants.py`: plants mutants, finds and replaces them, and runs a small suite."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from support.clib import needs_cc
from support.markdown import load_script

tool = load_script("tools/mutants.py")

PYTHON = {
    "swapped comparison": ("return a < b", "return (a <= b)"),
    "off by one": ("return a[0]", "return a[(1)]"),
    "dropped call": ("a.close()", "pass"),
    "swapped branches": ("return (a if b else c)", "return ((c if b else a))"),
    "negated condition": ("if a: b = 1", "if (not a): b = 1"),
    "returned None": ("return a", "return None"),
    "and/or swapped": ("return a and b or c", "return ((a and b) and c)"),
    "swapped arithmetic": ("return a + b", "return (a - b)"),
    "dropped not": ("return not a", "return (a)"),
    "dropped raise": ("raise ValueError(a)", "pass"),
    "removed keyword": ("return a(b, key=c)", "return (a(b))"),
}
C = {
    "swapped comparison": ("if (a < b) return 0;", "if (a <= b) return 0;"),
    "off by one": ("b = a[0];", "b = a[1];"),
    "dropped call": ("close(a);", ";"),
    "dropped assignment": ("a->b = b;", ";"),
    "negated condition": ("if (open(a)) {", "if (!(open(a))) {"),
    "returned 0": ("return a;", "return 0;"),
    "and/or swapped": ("b = a && c;", "b = a || c;"),
    "swapped arithmetic": ("b = a + c;", "b = a - c;"),
    "dropped not": ("b = !a;", "b = a;"),
}
NOT_CODE = 'f("a < b && !c"); /* a < b && !c */'


def changed_lines(path: str, text: str, operator: str) -> list[str]:
    """Returns the second line as changed by each mutant of one operator."""
    found = [one for one in tool.mutants_of(path, text) if one.operator == operator]
    return [one.apply(text).splitlines()[1].strip() for one in found]


@pytest.mark.parametrize("operator", PYTHON)
def test_operators_of_python(operator: str) -> None:
    before, after = PYTHON[operator]
    text = f"def f(a: int = 3 < 4, b=not 1, c=2) -> int:\n    {before}\n"
    assert after in changed_lines("a.py", text, operator)


@pytest.mark.parametrize("operator", C)
def test_operators_of_c(operator: str) -> None:
    before, after = C[operator]
    text = f"static int f(int a) {{\n  {before}\n}}\n"
    assert changed_lines("a.c", text, operator) == [after]
    assert not changed_lines("a.c", f"int f(int a) {{\n  {NOT_CODE}\n}}\n", operator)


def test_a_mutant_changes_its_own_function_alone() -> None:
    text = "é = 1 < 2\n\nclass A:\n    x = 1\n\n    def f(self):\n        return 'é', self.x + 1\n"
    found = tool.mutants_of("a.py", text)
    assert {one.function for one in found} == {"A.f"}
    [added] = [one for one in found if one.operator == "swapped arithmetic"]
    assert added.apply(text) == text.replace("self.x + 1", "(self.x - 1)")


BEFORE = """
def first(a, b):
    return a < b and b < a

def second(a):
    return a + 1
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of two functions, with a suite that tests one of them incompletely."""
    root = tmp_path / "repository"
    files = {
        "runtime/src/plugrt/sums.py": """
            def double(a):
                return a + a

            def untested(a):
                return a
            """,
        "tests/test_sums.py": """
            import sys
            sys.path.insert(0, "runtime/src/plugrt")
            import sums

            def test_double():
                assert sums.double(0) == 0
            """,
        "Makefile": f"""
            .venv/.synced:
            \tmkdir -p .venv/bin
            \tprintf '#!/bin/sh\\nexec {sys.executable} "$$@"\\n' > .venv/bin/python
            \tchmod +x .venv/bin/python
            \tln -s /bin/true .venv/bin/uv
            \ttouch $@
            """,
        ".gitignore": ".venv",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(textwrap.dedent(text).lstrip())
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(root))
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"]):
        subprocess.run([*git, *command], check=True)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # importing installed plugins is slow
    return root


def outcomes_of(data: Path) -> dict[str, str]:
    """Returns the outcomes by the changed text."""
    mutants = json.loads(data.read_text())["mutants"]
    return {f"{one['function']}: {one['after']}": one["outcome"] for one in mutants}


def test_a_small_suite(repository: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "mutants.json"
    run = ["--data", str(data), "--root", str(repository), "--copies", str(tmp_path)]
    tool.main([*run, "--count", "99"])
    expected = {
        "double: a - a": "survived",
        "double: return None": "killed",
        "untested: return None": "no test",
    }
    assert outcomes_of(data) == expected
    whole = json.loads(data.read_text())
    assert [one["by"] for one in whole["mutants"] if "by" in one] == [
        "tests/test_sums.py::test_double"
    ]

    del whole["mutants"][0]["outcome"]  # as after a run that was stopped
    data.write_text(json.dumps(whole))
    capfd.readouterr()
    tool.main(run)
    said = capfd.readouterr().out
    assert outcomes_of(data) == expected
    assert sum(":" in line.split(" ")[0] for line in said.splitlines() if line[:1].isdigit()) == 1


@needs_cc
def test_a_mutant_in_c_that_changes_nothing_is_not_drawn(tmp_path: Path) -> None:
    text = "int f(int a) {\n  int b = 0;\n  b = a;\n  return a + 0;\n}\n"
    tree = object.__new__(tool.Tree)
    tree.folder, tree.objects = tmp_path, tmp_path / "objects"
    (tmp_path / "a.c").write_text(text)
    (tmp_path / "objects").mkdir()
    planting = tool.Planting(tree, None, set())
    accepted = {one.after for one in tool.mutants_of("a.c", text) if planting.accept(one)}
    assert accepted == {"return a + 1;", "return 0;"}


def test_a_draw_depends_on_the_seed_alone() -> None:
    found = tool.mutants_of("a.py", BEFORE)
    one, two = (tool.draw(found, random.Random(5), set(), lambda mutant: True) for _ in range(2))
    assert one == two
    assert tool.draw(found, random.Random(5), {mutant.key for mutant in found}, bool) is None
