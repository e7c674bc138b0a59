"""Which module of the distributions names which, in whatever way it does."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = [
    ROOT / "runtime/src/plugrt",
    ROOT / "plugin_sdk/src/plugrt_sdk",
    *(ROOT / f"plugins/{name}/src/plugrt_{name}" for name in ("cpu", "cuda", "tpu")),
]
"""The package of each distribution."""

Graph = Mapping[str, Mapping[str, int]]
"""Module to each module that it names, and the line where it does so first."""


def modules(package: Path) -> dict[str, Path]:
    """Returns the modules of a package by their full names."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


NO_MODULES = {
    "plugrt.cli": "the entry-point group of commands",
    "plugrt.plugins": "the entry-point group of plugins, and a logger",
}
"""Strings that are spelt as a module is and name something else."""


def imported(path: Path) -> Iterator[tuple[str, int]]:
    """Gives each name that a file imports by a statement or by ``import_module``, and the line.

    They count wherever they stand: at the top, in functions, and under ``TYPE_CHECKING``. A name
    out of a module is given with the module: ``plugrt.errors.PlugrtError``.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports relatively"
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)
    for call in import_calls(tree):
        if call.args and isinstance(call.args[0], ast.Constant):
            yield str(call.args[0].value), call.lineno


def spelt(path: Path) -> Iterator[tuple[str, int]]:
    """Gives each string of a file that may name a module, and the line; docstrings are left out.

    Such are the tables of names that are loaded when first used, and what a child process is to
    call (``plugrt.trial:run``).
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            name = node.value.partition(":")[0]
            if "." in name and name not in NO_MODULES:
                yield name, node.lineno


def import_calls(tree: ast.AST) -> Iterator[ast.Call]:
    """Gives the calls of ``import_module`` and ``__import__`` in a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else node.func
            name = called.id if isinstance(called, ast.Name) else called
            if name in ("import_module", "__import__"):
                yield node


def references(path: Path, files: Mapping[str, Path]) -> Iterator[tuple[str, int]]:
    """Gives each of the modules ``files`` that a file names in whatever way, and the line.

    That Python imports a module's packages before the module is not counted: a package may name
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
    """Returns which of these modules names which other one."""
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
