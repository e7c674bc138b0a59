"""The loggers: one per subject, each made in one module, and all listed in the docs."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = [*(ROOT / "runtime/src").rglob("*.py"), *(ROOT / "plugin_sdk/src").rglob("*.py"),
           *(ROOT / "plugins").glob("*/src/**/*.py")]  # fmt: skip
HANDLERS = {"plugrt/cli/__init__.py", "plugrt/cli/doctor_child.py"}
"""They set handlers and levels of loggers, and log nothing."""


def module_of(path: Path) -> str:
    """Returns the path below ``src``."""
    return path.as_posix().rpartition("/src/")[2]


def loggers() -> dict[str, set[str]]:
    """Returns the names of loggers, each with the modules that get it."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in SOURCES:
        source = path.read_text(encoding="utf-8")
        if "logg" not in source or "/templates/" in path.as_posix():
            continue
        module = module_of(path)
        for node in ast.walk(ast.parse(source)):
            if not isinstance(node, ast.Call):
                continue
            made = isinstance(node.func, ast.Name) and node.func.id == "get_logger"
            if isinstance(node.func, ast.Attribute):
                owner, name = node.func.value, node.func.attr
                if isinstance(owner, ast.Name) and owner.id == "logging":
                    assert name not in {"debug", "info", "warning", "error", "basicConfig"}, path
                    made = name == "getLogger" and module not in HANDLERS
            if made:
                found[_name(node, module)].add(module)
    return found


def _name(call: ast.Call, module: str) -> str:
    [argument] = call.args
    if isinstance(argument, ast.Name):
        assert argument.id == "__package__", f"{module}: a logger of a module"
        return str(Path(module).parent).replace("/", ".")
    assert isinstance(argument, ast.Constant), module
    return str(argument.value)


def test_each_logger_is_made_in_one_module() -> None:
    for name, modules in loggers().items():
        assert len(modules) == 1, f"{name}: {sorted(modules)}"


def test_the_docs_list_them() -> None:
    page = (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")
    section = page.partition("## What is logged")[2].partition("\n## ")[0]
    listed = re.findall(r"^\| `(\w[\w.]*)` \|", section, re.MULTILINE)
    assert set(listed) == set(loggers())
    assert len(listed) == len(set(listed)) == 11
