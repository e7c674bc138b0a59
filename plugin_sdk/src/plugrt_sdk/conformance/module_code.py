"""`describe`: the digest of a module's code, and the names that it imports.

It imports only the standard library: ``setup.py`` runs it before plugrt is installed.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

_WITHOUT_EFFECT = ("ctx", "kind")
"""The fields of a syntax tree that do not change what the code does."""


def describe(source: bytes) -> tuple[str, list[str]]:
    """Returns the SHA-256 of a module's code, and its imports; relative ones keep their dots.

    The digest is the same in each version of Python, and ignores comments, documentation and
    layout.
    """
    tree = ast.parse(source)
    shape = json.dumps(_shape(tree)).encode()
    return hashlib.sha256(shape).hexdigest(), list(_imports(tree))


def describe_all(folder: Path) -> dict[str, tuple[str, list[str]]]:
    """Returns `describe` of each module of a package, by the SHA-256 of its source."""
    modules = [path for path in sorted(folder.rglob("*.py")) if "templates" not in path.parts]
    sources = [path.read_bytes() for path in modules]
    return {hashlib.sha256(source).hexdigest(): describe(source) for source in sources}


def _imports(node: ast.AST) -> Iterator[str]:
    """Yields the imports of a tree, without those under ``TYPE_CHECKING``."""
    match node:
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return
        case ast.Import():
            yield from (alias.name for alias in node.names)
        case ast.ImportFrom():
            home = "." * node.level + (node.module or "")
            within = home if home.endswith(".") else f"{home}."
            yield from (home, *(f"{within}{alias.name}" for alias in node.names))
    for child in ast.iter_child_nodes(node):
        yield from _imports(child)


def _shape(value: object) -> object:
    """Returns a part of a syntax tree as JSON, without positions and documentation.

    Omits empty fields, which differ between versions of Python.
    """
    if isinstance(value, ast.JoinedStr):  # Python 3.12 ends some formats with an empty text
        value = ast.JoinedStr([v for v in value.values if getattr(v, "value", None) != ""])
    if isinstance(value, ast.AST):
        given = ((k, v) for k, v in ast.iter_fields(value) if k not in _WITHOUT_EFFECT)
        return [type(value).__name__, {k: _shape(v) for k, v in given if v not in (None, [])}]
    if isinstance(value, list):
        return [_shape(item) for item in value if not _is_documentation(item)]
    return ascii(value)


def _is_documentation(node: object) -> bool:
    """Whether a statement is a string, which only readers use."""
    match node:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
    return False
