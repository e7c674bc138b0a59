"""The files in C: no large circles; the folders of the runtime's core, their order and headers."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path

import pytest

from support.import_graph import Graph, circles
from support.markdown import ROOT

ORDER = ("base", "values", "library", "arrays", "launches", "calls")
"""The runtime's folders: a file uses its own and those before it, these by the header so named."""
MADE = {"pjrt.h", "sizes.h", "sources.h"}
"""Made by generate.py, beside it: the declarations of the API are below all folders."""
ENTRY = "PyInit__core"

_NO_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|^#include[^\n]*', re.S | re.M)
_FUNCTION = re.compile(r"^(?!static|typedef|extern|#)[A-Za-z][\w *]*?(\w+)\(", re.M)
_VARIABLES = re.compile(r"^(?!static|typedef|extern|enum)\w+ ([\w *,]+)[\[\]\w]*(?:;| =)", re.M)


class Core:
    """The sources of a core, and which file uses the functions and variables of another."""

    def __init__(self, folder: str) -> None:
        self.folder = ROOT / folder

    def read(self, *kinds: str) -> dict[Path, str]:
        """Returns the code of files of these kinds, without comments and texts, by their paths."""
        paths = [path for kind in kinds for path in sorted(self.folder.rglob(f"*.{kind}"))]
        return {
            path.relative_to(self.folder): _NO_CODE.sub(" ", path.read_text(encoding="utf-8"))
            for path in paths
            if path.name not in MADE
        }

    @cached_property
    def uses(self) -> dict[Path, set[str]]:
        """File to every name in it."""
        return {p: set(re.findall(r"\w+", text)) for p, text in self.read("c", "cc").items()}

    @cached_property
    def homes(self) -> dict[str, Path]:
        """Function or variable that is not static to the file that defines it."""
        return {
            name: path
            for path, text in self.read("c").items()
            for listed in [*_FUNCTION.findall(text), *_VARIABLES.findall(text)]
            for name in re.findall(r"(\w+)(?:,|$)", listed)
        }

    def graph(self) -> Graph:
        """Returns which files use what others define."""
        return {
            str(path): {str(self.homes[n]): 1 for n in used if self.homes.get(n, path) != path}
            for path, used in self.uses.items()
        }


RUNTIME, TRACER = Core("runtime/core"), Core("plugin_sdk/core/trace")

pytestmark = pytest.mark.skipif(not RUNTIME.folder.exists(), reason="no core in C here")


@pytest.mark.parametrize(
    ("core", "most", "edges"),
    [
        # client, buffer, references, view and wait
        (RUNTIME, 5, ["library/buffer.c library/view.c", "calls/calls.c base/objects.c"]),
        # a table of entry points, which call the library of their table
        (TRACER, 4, ["table.c thunks.c", "thunks.c call.c"]),
    ],
    ids=["runtime", "tracer"],
)
def test_few_files_call_each_other_in_a_circle(core: Core, most: int, edges: list[str]) -> None:
    graph = core.graph()
    for user, used in map(str.split, edges):
        assert used in graph[user]
    largest = max(circles(graph), key=len, default=[])
    assert len(largest) <= most, largest


def test_a_folder_includes_those_before_it_by_one_header_each() -> None:
    assert {path.parent.name for path in RUNTIME.uses} == {*ORDER, ""}
    for path in RUNTIME.read("c", "cc", "h"):
        folder = path.parent.name
        before = ORDER[: ORDER.index(folder)] if folder else ORDER
        text = (RUNTIME.folder / path).read_text(encoding="utf-8")
        for name in re.findall(r'^#include "(.*)"', text, re.M):
            own = name.startswith(f"{folder}/")
            allowed = own or name in MADE or name in {f"{other}/{other}.h" for other in before}
            assert allowed, f"{path} includes {name}"
            assert (RUNTIME.folder / name).is_file()


def test_each_name_is_declared_for_those_who_use_it() -> None:
    """In the folder's header for other folders, in internal.h for its own; else it is static."""
    headers = {path: set(re.findall(r"\w+", text)) for path, text in RUNTIME.read("h").items()}
    for name, home in RUNTIME.homes.items():
        users = {path for path, used in RUNTIME.uses.items() if name in used} - {home}
        if name == ENTRY:
            continue
        assert users, f"{home}: {name} is used in this file alone: let it be static"
        folder = home.parent
        inside = all(user.parent == folder for user in users)
        wanted = folder / ("internal.h" if inside else f"{folder.name}.h")
        if inside and any(user.suffix == ".cc" for user in users):
            wanted = folder / "guard.h"  # of C and C++
        where = [str(header) for header, names in headers.items() if name in names]
        assert where == [str(wanted)], f"{home}: {name} belongs in {wanted}, not {where}"
