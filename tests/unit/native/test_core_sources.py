"""Generated files of the two cores in C: headers of the declarations, and lists of sources.

If two branches change a core, each lists its own sources: git merges them line by line, and these
tests report what the merge missed.
"""

from __future__ import annotations

import importlib
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from plugrt.native import core_sources
from plugrt.native.source_stamps import HEADER, explain_other_sources, source_lines
from plugrt_sdk.export import core_sources as sdk_core_sources
from support.markdown import ROOT
from support.native_core import needs_core

RUNTIME, SDK = "runtime/core", "plugin_sdk/core"
NAMED = {RUNTIME: core_sources.SOURCES, SDK: sdk_core_sources.SOURCES}
"""Folder of a core to the sources that its package in Python names."""
COMPILED = [
    pytest.param(RUNTIME, "plugrt._core", marks=needs_core),
    pytest.param(SDK, "plugrt_sdk.export._core"),  # tests/conftest.py skips tests that import it
]

cores = pytest.mark.parametrize("folder", NAMED)


def check_made(folder: str, files: str, root: Path = ROOT) -> dict[Path, Any]:
    """Fails with the command for repair if the generator would write anything else."""
    made: dict[str | Path, Any] = runpy.run_path(str(root / folder / "generate.py"))[files]
    found = {root / folder / name: text for name, text in made.items()}
    stale = [
        str(path.relative_to(root))
        for path, text in found.items()
        if path.read_text(encoding="utf-8") != text()
    ]
    if stale:
        pytest.fail(
            f"{', '.join(stale)}: not what {folder}/generate.py makes now, as after a change of C, "
            f"or a merge of two. Run\n    .venv/bin/python {folder}/generate.py\n"
            "and commit what it writes",
            pytrace=False,
        )
    return found


@cores
def test_the_headers_are_made_from_the_declarations(folder: str) -> None:
    assert check_made(folder, "FILES")
    assert (ROOT / folder / "pjrt.h").samefile(ROOT / RUNTIME / "pjrt.h")


def test_the_header_of_the_runner_is_made_from_the_declarations() -> None:
    assert check_made("plugin_sdk/runner", "FILES")


@cores
def test_c_and_python_name_the_sources_as_they_are(folder: str) -> None:
    """Otherwise a core built before a change would count as up to date."""
    made = check_made(folder, "SOURCE_FILES")
    assert len(made) == 2
    lines = NAMED[folder].splitlines()
    header = (ROOT / folder / HEADER).read_text(encoding="utf-8")
    assert re.findall(r'^ *"(.*)\\n"$', header, re.M) == lines
    assert {line.split()[0] for line in lines} == {
        str(path.relative_to(ROOT / folder))
        for path in (ROOT / folder).rglob("*.*")
        if path.suffix in (".c", ".h", ".cc")
    } - {HEADER}


def test_a_source_has_one_line_that_changes_with_it(tmp_path: Path) -> None:
    (tmp_path / "arrays").mkdir()
    for name in ("arrays/array.c", HEADER):
        (tmp_path / name).write_bytes((ROOT / RUNTIME / name).read_bytes())
    [before] = source_lines(tmp_path)
    assert before in NAMED[RUNTIME].splitlines()
    (tmp_path / "arrays/array.c").write_text("changed", encoding="utf-8")
    [after] = source_lines(tmp_path)
    assert after.split()[0] == "arrays/array.c"
    assert after != before


@pytest.mark.parametrize(("folder", "module"), COMPILED)
def test_the_compiled_module_says_its_sources(folder: str, module: str) -> None:
    core = importlib.import_module(module)
    assert explain_other_sources(core, NAMED[folder], "plugrt", "runtime") == ""
