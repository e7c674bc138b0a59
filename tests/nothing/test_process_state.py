"""State of the process, not of a client, has a comment with the reason at its definition.

State means values that a module makes empty and fills later (containers, counters, thread-locals),
locks, and names that a function rebinds by ``global``. `functools.cache` is allowed: its results do
not depend on the caller.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from support.markdown import ROOT

SOURCES = ("runtime/src", "plugin_sdk/src", "plugins")
MAKERS = {
    "dict",
    "list",
    "set",
    "deque",
    "defaultdict",
    "OrderedDict",
    "Counter",
    "WeakKeyDictionary",
    "WeakValueDictionary",
    "WeakSet",
    "WeakKeys",
    "Lock",
    "RLock",
    "local",
    "count",
    "Condition",
    "Event",
    "ContextVar",
    "Semaphore",
}
REASON = "# Process-wide: "


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yields the statements that run when a module is imported, functions and classes left out."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If | ast.Try | ast.With):
            yield from statements(statement.body)
            yield from statements(getattr(statement, "orelse", []))


def is_state(value: ast.expr | None) -> bool:
    """Whether an expression makes an object that is changed later."""
    match value:
        case ast.Dict(keys=items) | ast.List(elts=items):
            return not items
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in MAKERS
        case ast.Call(func=ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name))):
            return name in MAKERS
    return False


def find_unexplained(source: str) -> list[str]:
    """Returns the state of a module without a comment on the line before."""
    tree, lines = ast.parse(source), source.splitlines()
    rebound = {n for each in ast.walk(tree) if isinstance(each, ast.Global) for n in each.names}
    explained, found = set(), []
    for statement in statements(tree.body):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                pass
            case ast.AnnAssign(target=ast.Name(id=name), value=value):
                pass
            case ast.Import(names=[alias]):
                name, value = alias.asname or alias.name, None
            case _:
                continue
        before = lines[statement.lineno - 2].strip() if statement.lineno > 1 else ""
        if before.startswith(REASON):
            explained.add(name)
        elif is_state(value):
            found.append(name)
    return [*found, *sorted(rebound - explained - set(found))]


FILES = [
    path
    for folder in SOURCES
    for path in sorted((ROOT / folder).rglob("*.py"))
    if "templates" not in path.parts
]


def test_state_of_the_process_says_why() -> None:
    found = {
        str(Path(path).relative_to(ROOT)): names
        for path in FILES
        if (names := find_unexplained(path.read_text(encoding="utf-8")))
    }
    assert not found, f"keep it on the client, or say above it why not: {REASON!r}"
