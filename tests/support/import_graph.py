"""The references between modules of the distributions, of every kind."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGES = [
    ROOT / "runtime/src/plugrt",
    ROOT / "plugin_sdk/src/plugrt_sdk",
    *(path.parent for path in sorted(ROOT.glob("plugins/*/src/*/__init__.py"))),
]
"""The package of each distribution."""

Graph = Mapping[str, Mapping[str, int]]
"""Each module to the modules that it refers to, and the line of the first reference."""


def modules(package: Path) -> dict[str, Path]:
    """Returns the modules of a package by their full names."""
    found = {}
    # Extension modules have a stub alone.
    stubs = [p for p in package.rglob("*.pyi") if not p.with_suffix(".py").exists()]
    for path in sorted([*package.rglob("*.py"), *stubs]):
        parts = path.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


NO_MODULES = {
    "plugrt.cli": "the entry-point group of commands",
    "plugrt.plugins": "the entry-point group of plugins, and a logger",
}
"""Strings in the form of a module's name that mean something else."""


class Named(NamedTuple):
    """The references in a file, each with its line."""

    imports: list[tuple[str, int]]
    """By a statement or by ``import_module``."""
    strings: list[tuple[str, int]]
    """In strings that may name a module, docstrings left out."""
    calls: list[ast.Call]
    """The calls of ``import_module`` and ``__import__``."""


def named(path: Path) -> Named:
    """Returns the references in a file, at any place: at the top, in functions, for annotations."""
    if path.suffix == ".pyi":  # stubs, which nothing loads
        return Named([], [], [])
    return _named(path, path.read_text(encoding="utf-8"))


@cache
def _named(path: Path, source: str) -> Named:
    """Reads a file once for all tests: parsing the sources is their main cost."""
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    prose = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    found = Named([], [], [])
    for node in nodes:
        if isinstance(node, ast.Import):
            found.imports.extend((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports relatively"
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            found.imports.extend((name, node.lineno) for name in names)
        elif isinstance(node, ast.Call) and is_import_call(node):
            found.calls.append(node)
        elif (
            isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose
        ):
            found.strings.append((node.value, node.lineno))
    return found


def is_import_call(call: ast.Call) -> bool:
    """Whether a call is of ``import_module`` or ``__import__``, also as a module's attribute."""
    called = call.func.attr if isinstance(call.func, ast.Attribute) else call.func
    name = called.id if isinstance(called, ast.Name) else called
    return name in ("import_module", "__import__")


def imported(path: Path) -> Iterator[tuple[str, int]]:
    """Yields each name that a file imports by a statement or by ``import_module``, and the line.

    Imports count at any place: at the top, in functions, and under ``TYPE_CHECKING``. A name from a
    module includes the module: ``plugrt.errors.PlugrtError``.
    """
    yield from named(path).imports
    for call in named(path).calls:
        if call.args and isinstance(call.args[0], ast.Constant):
            yield str(call.args[0].value), call.lineno


def spelt(path: Path) -> Iterator[tuple[str, int]]:
    """Yields each string of a file that may name a module, and the line, without docstrings.

    Examples are the tables of names that are loaded at their first use, and the functions of child
    processes (``plugrt.capi.probing.trial_computation:run``).
    """
    for string, line in named(path).strings:
        name = string.partition(":")[0]
        if "." in name and name not in NO_MODULES:
            yield name, line


def references(path: Path, files: Mapping[str, Path]) -> Iterator[tuple[str, int]]:
    """Yields each of the modules ``files`` that a file refers to, and the line.

    Python's import of a module's packages before the module does not count: a package may refer to
    its own modules.
    """
    for name, line in imported(path):
        module = name if name in files else name.rpartition(".")[0]
        if module in files:
            yield module, line
    for name, line in spelt(path):
        if name in files:
            yield name, line


def graph_of(files: Mapping[str, Path]) -> dict[str, dict[str, int]]:
    """Returns the graph of references between these modules."""
    graph: dict[str, dict[str, int]] = {}
    for module, path in files.items():
        edges = graph[module] = {}
        for target, line in references(path, files):
            if target != module:
                edges.setdefault(target, line)
    return graph


def circles(graph: Graph) -> list[list[str]]:
    """Returns the sets of modules that can all be reached from each other (Tarjan's algorithm)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        number[module] = lowest[module] = len(number)
        stack.append(module)
        for other in graph[module]:
            if other not in number:
                visit(other)
                lowest[module] = min(lowest[module], lowest[other])
            elif other in stack:
                lowest[module] = min(lowest[module], number[other])
        if lowest[module] == number[module]:
            start = stack.index(module)
            found.append(sorted(stack[start:]))
            del stack[start:]

    for module in graph:
        if module not in number:
            visit(module)
    return [members for members in found if len(members) > 1]


def describe(graph: Graph, members: list[str]) -> str:
    """Returns each reference within a circle, a line each."""
    return "\n".join(
        f"{module}:{line} names {other}"
        for module in members
        for other, line in graph[module].items()
        if other in members
    )
