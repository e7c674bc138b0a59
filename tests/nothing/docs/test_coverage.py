"""docs/coverage.md: every public name of JAX's dispatch has an entry, with existing objects."""

from __future__ import annotations

import ast
import importlib
import re
from types import ModuleType
from typing import Any

import pytest

from support.markdown import ROOT, load_script
from support.requirements import needs_jax

COVERAGE = load_script("docs/generate/coverage.py")
DATA: dict[str, Any] = COVERAGE.read()
SECTIONS = {key: value["names"] for key, value in DATA.items() if isinstance(value, dict)}
ENTRIES = [(f"{s}.{n}", entry) for s, names in SECTIONS.items() for n, entry in names.items()]
HOMES = {
    "xla_bridge": "jax._src.xla_bridge",
    "dispatch": "jax._src.dispatch",
    "pxla": "jax._src.interpreters.pxla",
}


def resolve(path: str) -> object:
    """Returns the object of a dotted path: the longest module in it, then attributes."""
    parts = path.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError as error:
            if not ".".join(parts[:count]).startswith(error.name or ""):
                raise
            continue
        for part in parts[count:]:
            found = getattr(found, part)
        return found
    raise AssertionError(f"nothing in {path!r} can be imported")


@needs_jax
@pytest.mark.parametrize("section", HOMES)
def test_every_public_name_of_jax_has_an_entry(section: str) -> None:
    import jax

    if jax.__version__ != DATA["jax"]:
        pytest.skip(f"the file is of JAX {DATA['jax']}")
    assert set(SECTIONS[section]) == COVERAGE.names(importlib.import_module(HOMES[section]))


def test_the_parameters_of_xla_computation_have_entries() -> None:
    # Names of jax 0.4.20, the version of its documentation.
    parameters = """fun static_argnums axis_env in_parts out_parts backend tuple_args
        instantiate_const_outputs return_shape donate_argnums"""
    assert set(SECTIONS["xla_computation"]) == set(parameters.split())


@pytest.mark.parametrize(("name", "entry"), ENTRIES, ids=[name for name, _ in ENTRIES])
def test_an_entry_says_one_thing_that_holds(name: str, entry: dict[str, str]) -> None:
    [says] = {"ours", "later", "not_taken"} & set(entry)
    assert set(entry) <= {says, "test", "note"}
    assert says != "ours" or "test" in entry, "what is there has a test"
    if says == "ours":
        resolve(entry["ours"])
    if says == "later":
        assert re.fullmatch(r"[\w' `]{4,60}", entry["later"])
    if "test" in entry:
        file, _, function = entry["test"].partition("::")
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        there = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
        assert not function or function in there, f"{file} has no {function}"


def test_missing_names_do_not_resolve() -> None:
    with pytest.raises(AttributeError):
        resolve("plugrt.plugins.no_such_name")
    with pytest.raises(AssertionError):
        resolve("no_such_package.name")


def test_names_are_those_that_a_module_defines() -> None:
    module = ModuleType("some")
    exec("import os\nfrom pathlib import Path\nLIMIT = 3\ndef f(): ...\n_p = 1", vars(module))
    assert COVERAGE.names(module) == {"LIMIT", "f"}


def test_the_page_is_current() -> None:
    page = (ROOT / "docs/coverage.md").read_text(encoding="utf-8")
    assert page == COVERAGE.page(), "run `make docs`"
