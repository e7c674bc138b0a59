"""Checks that a change of docstrings and comments did not change code.

    python tools/same_code.py COMMIT [PATH...]

Compares the working tree with COMMIT. Syntax trees of Python files must be equal but for docstrings
and other strings that are statements. Tokens of C files must be equal but for comments. Prints the
first file that differs and exits with 1. Ignores other kinds of files, and new or deleted ones.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

C_PARTS = re.compile(
    r"""(?P<comment>/\*.*?\*/|//[^\n]*)|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'"""
    r"""|^[ \t]*\#(?:\\\n|/\*.*?\*/|[^\n/]|/(?![*/]))*|[\w.]+|[^\s\w]""",
    re.S | re.M,
)


def is_string(item: ast.stmt) -> bool:
    """Whether a statement is a docstring, or another string alone."""
    value = item.value if isinstance(item, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def python_code(text: str) -> str:
    """Returns the syntax tree without the strings that are statements."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            body[:] = [item for item in body if not is_string(item)]
    return ast.dump(tree)


def c_code(text: str) -> list[str]:
    """Returns the tokens without comments; a preprocessor line is one token."""
    tokens = (found[0] for found in C_PARTS.finditer(text) if not found["comment"])
    return [" ".join(re.sub(r"/\*.*?\*/", "", t, flags=re.S).split()) for t in tokens]


def main(commit: str, *paths: str) -> int:
    """Compares the changed files and returns the exit status."""
    git = ["git", "diff", "--name-only", "--no-renames", "--diff-filter=M", commit, "--", *paths]
    reads = {".py": python_code, ".pyi": python_code, ".c": c_code, ".h": c_code}
    for name in subprocess.check_output(git, text=True).split():
        if read := reads.get(Path(name).suffix):
            before = subprocess.check_output(["git", "show", f"{commit}:{name}"], text=True)
            if read(before) != read(Path(name).read_text()):
                sys.exit(f"{name}: the code is not the same")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
