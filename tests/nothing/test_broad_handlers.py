"""A handler of any exception states its reason: on its line, or in the comment below."""

from __future__ import annotations

import ast

from support.markdown import ROOT

FILES = sorted((ROOT / "runtime/src").rglob("*.py"))


def broad_handlers(source: str) -> list[int]:
    """Returns the lines of the ``except`` clauses that catch any exception."""
    handlers = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.ExceptHandler)]
    return [
        handler.lineno
        for handler in handlers
        if handler.type is None or {"Exception", "BaseException"} & {
            name.id for name in ast.walk(handler.type) if isinstance(name, ast.Name)
        }
    ]  # fmt: skip


def says_why(lines: list[str], number: int) -> bool:
    """Whether text follows the handler's line or its mark for ruff."""
    comment = lines[number - 1].partition("#")[2].replace("noqa: BLE001", "").strip(" -#")
    return bool(comment) or lines[number].strip().startswith("# ")


def test_a_handler_of_any_exception_says_why() -> None:
    silent = []
    for path in FILES:
        source = path.read_text("utf-8")
        lines = source.splitlines()
        silent += [f"{path}:{n}" for n in broad_handlers(source) if not says_why(lines, n)]
    assert len(FILES) > 400
    assert silent == []
