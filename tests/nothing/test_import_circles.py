"""No module leads back to itself, in whatever way modules name each other."""

from __future__ import annotations

import ast
import itertools
from pathlib import Path

import pytest

from support.import_graph import (
    PACKAGES,
    Graph,
    circles,
    describe,
    graph_of,
    imported,
    modules,
    named,
)

FILES = {name: path for package in PACKAGES for name, path in modules(package).items()}

WAYS = {
    "import": "import made.b",
    "from": "from made.b import name",
    "from the package": "from made import b",
    "in a function": "def f():\n    from made.b import name",
    "for annotations": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import made.b",
    "import_module": "from importlib import import_module\nimport_module('made.b')",
    "importlib.import_module": "import importlib\nimportlib.import_module('made.b')",
    "a table": "NAMES = {'name': 'made.b'}",
    "an attribute": "run_in_child('made.b:name')",
}


@pytest.fixture(scope="module")
def graph() -> Graph:
    return graph_of(FILES)


MUTUAL = [
    f"plugrt.interface.{n}" for n in ("buffer", "client", "device", "loaded_executable", "memory")
]
"""The classes of PJRT's objects that name each other, which annotations alone do."""


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
    """A name that is put together where it is imported is one that no test reads."""
    wrong = [
        f"{path}:{call.lineno} imports {ast.unparse(call.args[0])}"
        for path in FILES.values()
        for call in named(path).calls
        if any(isinstance(part, ast.JoinedStr | ast.BinOp) for part in ast.walk(call))
    ]
    assert not wrong, "\n".join(wrong)


def made_up(folder: Path, **sources: str) -> dict[str, Path]:
    """Returns the modules of a package ``made`` in ``folder``."""
    package = folder / "made"
    package.mkdir()
    for name, source in {"__init__": "", **sources}.items():
        (package / f"{name}.py").write_text(source)
    return modules(package)


@pytest.mark.parametrize("way", WAYS)
def test_each_way_to_name_a_module_can_close_a_circle(way: str, tmp_path: Path) -> None:
    files = made_up(tmp_path, a=WAYS[way], b="from made.c import d", c="import made.a", d="")
    graph = graph_of(files)
    assert circles(graph) == [["made.a", "made.b", "made.c"]]
    assert "made.c:1 names made.a" in describe(graph, ["made.a", "made.b", "made.c"])


def test_what_is_no_circle_is_not_called_one(tmp_path: Path) -> None:
    files = made_up(
        tmp_path,
        __init__="NAMES = {'a': 'made.a', 'b': 'made.b'}",
        a='"""made.b"""\nimport made.b, made.c\nlog("made.b.events")',
        b="import made.c",
        c="import made.d",
        d='"""See made.a"""',
    )
    assert circles(graph_of(files)) == []


def test_a_package_and_its_module_can_be_a_circle(tmp_path: Path) -> None:
    files = made_up(tmp_path, __init__="NAMES = {'x': 'made.a'}", a="from made import x")
    assert circles(graph_of(files)) == [["made", "made.a"]]


def test_several_circles_are_told_apart(tmp_path: Path) -> None:
    pairs = {"a": "b", "b": "a", "c": "d", "d": "c"}
    sources = {name: f"import made.{other}" for name, other in pairs.items()}
    sources["a"] += "\nimport made.c"
    found = circles(graph_of(made_up(tmp_path, **sources)))
    assert sorted(found) == [["made.a", "made.b"], ["made.c", "made.d"]]


def test_names_that_are_groups_elsewhere_are_modules_where_they_are_imported(
    tmp_path: Path,
) -> None:
    file = tmp_path / "some.py"
    file.write_text("GROUP = 'plugrt.plugins'\n__import__('plugrt.cli')\n")
    assert list(imported(file)) == [("plugrt.cli", 2)]


def test_the_walk_takes_every_order_of_modules(tmp_path: Path) -> None:
    """A circle is found whichever of its modules, or of those that lead to it, comes first."""
    files = made_up(
        tmp_path, a="import made.b", b="import made.c", c="import made.b", d="import made.a"
    )
    for order in itertools.permutations(files):
        assert circles(graph_of({name: files[name] for name in order})) == [["made.b", "made.c"]]
