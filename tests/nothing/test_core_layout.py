"""The folders of the runtime's core in C: their order, their headers, and no large circles."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.import_graph import Graph, circles
from support.native_core import SOURCES

ORDER = ("base", "values", "library", "arrays", "launches", "calls")
"""The folders: a file uses its own and those before it, these by the header of their name."""
MADE = {"pjrt.h", "sizes.h", "sources.h"}
"""What generate.py makes, beside it: the declarations of the API are below all folders."""
MOST_IN_A_CIRCLE = 5
"""How many files may call each other: client, buffer, references, view and wait do."""
ENTRY = "PyInit__core"

_NO_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|^#include[^\n]*', re.S | re.M)
_FUNCTION = re.compile(r"^(?!static|typedef|extern)[A-Za-z][\w *]*?(\w+)\(", re.M)
_VARIABLES = re.compile(r"^(?!static|typedef|extern|enum)\w+ ([\w *,]+)(?:;| =)", re.M)

pytestmark = pytest.mark.skipif(not SOURCES.exists(), reason="no core in C here")


def read_files(*kinds: str) -> dict[Path, str]:
    """Returns the code of the files of these kinds, without comments and texts, by their paths."""
    paths = [path for kind in kinds for path in sorted(SOURCES.rglob(f"*.{kind}"))]
    return {
        path.relative_to(SOURCES): _NO_CODE.sub(" ", path.read_text(encoding="utf-8"))
        for path in paths
        if path.name not in MADE
    }


FILES = read_files("c", "cc")
USES = {path: set(re.findall(r"\w+", text)) for path, text in FILES.items()}
HOMES = {
    name: path
    for path, text in FILES.items()
    if path.suffix == ".c"
    for listed in [*_FUNCTION.findall(text), *_VARIABLES.findall(text)]
    for name in re.findall(r"\w+", listed)
}
"""Function or variable that is not static to the file that defines it."""


def users_of(name: str) -> set[Path]:
    """Returns the files that use what another one defines."""
    return {path for path, used in USES.items() if name in used} - {HOMES[name]}


def test_few_files_call_each_other_in_a_circle() -> None:
    graph: Graph = {
        str(path): {str(HOMES[name]): 1 for name in used if HOMES.get(name, path) != path}
        for path, used in USES.items()
    }
    assert {"library/client.c", "library/view.c"} <= set(graph["library/buffer.c"])
    assert {"base/objects.c", "calls/last_call.c"} <= set(graph["calls/calls.c"])
    largest = max(circles(graph), key=len, default=[])
    assert len(largest) <= MOST_IN_A_CIRCLE, largest


def test_a_folder_includes_those_before_it_by_one_header_each() -> None:
    assert {path.parent.name for path in FILES} == {*ORDER, ""}
    for path in (*FILES, *read_files("h")):
        folder = path.parent.name
        before = ORDER[: ORDER.index(folder)] if folder else ORDER
        text = (SOURCES / path).read_text(encoding="utf-8")
        for name in re.findall(r'^#include "(.*)"', text, re.M):
            own = name.startswith(f"{folder}/")
            allowed = own or name in MADE or name in {f"{other}/{other}.h" for other in before}
            assert allowed, f"{path} includes {name}"
            assert (SOURCES / name).is_file()


def test_each_name_is_declared_for_those_who_use_it() -> None:
    """In the folder's header for other folders, in internal.h for its own; else it is static."""
    headers = {path: set(re.findall(r"\w+", text)) for path, text in read_files("h").items()}
    for name, home in HOMES.items():
        users, folder = users_of(name), home.parent
        if name == ENTRY:
            continue
        assert users, f"{home}: {name} is used in this file alone: let it be static"
        inside = all(user.parent == folder for user in users)
        wanted = folder / ("internal.h" if inside else f"{folder.name}.h")
        if inside and any(user.suffix == ".cc" for user in users):
            wanted = folder / "guard.h"  # of C and C++
        where = [str(header) for header, names in headers.items() if name in names]
        assert str(wanted) in where, f"{home}: {name} belongs in {wanted}, not {where}"
