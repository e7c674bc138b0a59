"""Modules do not refer to each other in a circle, by any kind of reference."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from support.import_graph import PACKAGES, Graph, circles, describe, graph_of, modules, named

FILES = {name: path for package in PACKAGES for name, path in modules(package).items()}


@pytest.fixture(scope="module")
def graph() -> Graph:
    return graph_of(FILES)


MUTUAL = [
    f"plugrt.interface.{n}" for n in ("buffer", "client", "device", "loaded_executable", "memory")
]
"""The classes of PJRT's objects that refer to each other in annotations only."""


def test_there_are_no_circles(graph: Graph) -> None:
    found = [members for members in circles(graph) if members != MUTUAL]
    assert not found, "\n\n".join(describe(graph, members) for members in found)


def test_objects_of_the_interface_name_each_other_in_annotations_alone(graph: Graph) -> None:
    assert MUTUAL in circles(graph)
    at_run_time = {
        module: {t: n for t, n in graph[module].items() if t in MUTUAL and n not in annotations}
        for module in MUTUAL
        for annotations in [annotation_lines(FILES[module])]
    }
    assert circles(at_run_time) == []


def annotation_lines(path: Path) -> set[int]:
    """Returns the lines of imports that Python does not run: those under TYPE_CHECKING."""
    blocks = [
        node
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    return {n for node in blocks for n in range(node.lineno, (node.end_lineno or 0) + 1)}


def test_the_graph_has_what_only_strings_and_annotations_name(graph: Graph) -> None:
    assert all((package / "__init__.py").exists() for package in PACKAGES)
    assert "plugrt.array_api" in graph["plugrt"]
    assert "plugrt.capi.client.create" in graph["plugrt.capi"]
    assert "plugrt.capi.probing.probe_child" in graph["plugrt.capi.probing.probe"]
    assert "plugrt.interface" in graph["plugrt.transforms.setting_contexts"]
    assert "plugrt.interface" in graph["plugrt_cpu.client"]


def test_names_of_modules_are_written_out() -> None:
    """These tests cannot read a module's name that is computed at the import."""
    wrong = [
        f"{path}:{call.lineno} imports {ast.unparse(call.args[0])}"
        for path in FILES.values()
        for call in named(path).calls
        if any(isinstance(part, ast.JoinedStr | ast.BinOp) for part in ast.walk(call))
    ]
    assert not wrong, "\n".join(wrong)
