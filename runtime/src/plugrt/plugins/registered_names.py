"""`read_registered_name`: JAX's name of a plugin, read from the plugin's source."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import PathFinder

from plugrt import files
from plugrt.plugins.record import Record

_FUNCTIONS = {"register_plugin": "plugin_name", "register_backend_factory": "name"}
"""JAX's functions that register a plugin, and their parameter for its name."""


def read_registered_name(record: Record) -> str:
    """Returns the one name that the record's module registers in JAX; runs and imports nothing.

    Empty where the source cannot be read, registers several names, or computes its name.
    """
    source = _find_source(record)
    if source is None:
        return ""
    try:
        module = ast.parse(files.read_bytes(source))
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return ""  # whoever loads the plugin reports it
    names = set(_registered(module))
    name = names.pop() if len(names) == 1 else None
    return name or ""


def _registered(module: ast.Module) -> Iterator[str | None]:
    """Yields the name in each call that registers a plugin; None for one that is computed."""
    constants = {
        target.id: _text(node.value)
        for node in module.body if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }  # fmt: skip
    for node in ast.walk(module):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        function = getattr(called, "attr", None) or getattr(called, "id", None)
        if function in _FUNCTIONS:
            named = [k.value for k in node.keywords if k.arg == _FUNCTIONS[function]]
            given = [*node.args[:1], *named, None][0]
            yield constants.get(given.id) if isinstance(given, ast.Name) else _text(given)


def _text(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _find_source(record: Record) -> str | None:
    """Returns the file of the record's module; imports none of its packages."""
    if not record.distribution:  # a module of a namespace package
        found = [record.location + ".py", os.path.join(record.location, "__init__.py")]
        return next(filter(os.path.isfile, found), None)
    folders: Sequence[str] = [os.path.dirname(record.location), *sys.path]
    path, origin = "", None
    for part in record.value.partition(":")[0].strip().split("."):
        path = f"{path}.{part}" if path else part
        spec = PathFinder.find_spec(path, folders)
        if spec is None:
            return None
        folders, origin = list(spec.submodule_search_locations or ()), spec.origin
    return origin if origin and origin.endswith(".py") else None
