"""`tools/prose.py`: ceilings of each file's hits fall, and move with the text."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.markdown import ROOT, load_script

TOOL = load_script("tools/prose.py")
HIT = "The function takes a value."
OTHER = "A list of which nothing is left."
PLAIN = "The function accepts a value and returns another one."


class Tree:
    """A repository with rows of `tools/prose.py`, for one test."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "tools").mkdir()
        self.git("init", "-q")

    def git(self, *arguments: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *who, *arguments], cwd=self.root, check=True)

    def write(self, name: str, *lines: str) -> None:
        (self.root / name).write_text("".join(f"{line}\n\n" for line in lines))

    def commit(self) -> None:
        """Commits all files, with the current rows."""
        assert TOOL.write(self.root, "") == []
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "x")

    @property
    def rows(self) -> dict[str, int]:
        found: dict[str, int] = json.loads((self.root / TOOL.CEILINGS).read_text())
        return found


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    made = Tree(tmp_path)
    made.write("a.md", HIT, OTHER, PLAIN)
    made.write("b.md", PLAIN)
    made.git("add", "-A")
    made.git("commit", "-q", "-m", "before there were rows")
    made.commit()
    return made


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", f'"""{HIT}"""\nx = "{OTHER}"  # {OTHER}\n'),
        ("a.c", f"/* {HIT} */\nint x; // {OTHER}\n"),
        ("a.md", f"{HIT}\n```\n{HIT}\n```\n`{HIT}` {OTHER}\n"),
    ],
)
def test_prose_is_read_and_code_is_not(name: str, text: str) -> None:
    found = TOOL.count(name, text)
    assert [hit.construct for _, hit in found.hits] == ["takes", "prep-which"]


def test_a_rise_is_refused_by_both_commands(tree: Tree) -> None:
    tree.write("a.md", HIT, OTHER, PLAIN, "It takes more.")
    assert TOOL.check(tree.root)[0].startswith("a.md: 3 hits")
    message, *hits = TOOL.write(tree.root, "")
    assert message.startswith("a.md: 3 hits")
    assert [line.split()[0] for line in hits] == ["a.md:7:"]  # only the new one
    assert tree.rows == {"a.md": 2}


def test_a_fall_must_be_kept(tree: Tree) -> None:
    tree.write("a.md", HIT, PLAIN)
    (message,) = TOOL.check(tree.root)
    assert "a.md" in message
    assert "--write" in message
    tree.commit()
    assert tree.rows == {"a.md": 1}
    assert TOOL.check(tree.root) == []
    tree.write("a.md", HIT, OTHER, PLAIN)
    assert TOOL.write(tree.root, "")


def test_make_lint_checks_the_rows(tree: Tree) -> None:
    assert "tools/prose.py --check\n" in (ROOT / "Makefile").read_text()
    tree.write("a.md", HIT, HIT, HIT)
    command = [sys.executable, str(ROOT / "tools/prose.py"), str(tree.root), "--check"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "a.md: 3 hits" in done.stderr
