"""The documentation's site: every page is in its contents, and names in pages exist."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import plugrt
from support.markdown import ROOT, load_script, pages

yaml = pytest.importorskip("yaml", reason="needs PyYAML, which the group `docs` brings")
_TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


def _contents(part: Any) -> Iterator[str]:
    """Yields the pages in a part of the site's contents."""
    if isinstance(part, str):
        yield part
    else:
        for item in part.values() if isinstance(part, dict) else part:
            yield from _contents(item)


@cache
def _functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_page_is_in_the_contents() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = set(_contents(yaml.safe_load(text)["nav"]))
    there = {p.name for p in (ROOT / "docs").glob("*.md")} | {*_site().PAGES.values()}
    assert there <= listed, there - listed
    assert "api/plugrt.md" in listed


def test_every_public_module_and_name_is_in_the_api_reference() -> None:
    pages = _site().api_pages()
    contents = set(_contents(yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"]))
    assert {f"api/{page}.md" for page in pages} <= contents
    modules = {n for n in plugrt.__all__ if inspect.ismodule(getattr(plugrt, n))}
    assert modules <= set(pages), modules - set(pages)
    names = {n for n in plugrt.__all__ if not n.startswith("_")} - modules
    entries = re.findall(r"^(?:::: plugrt\.|## (?:plugrt\.)?)(\w+)$", pages["plugrt"], re.MULTILINE)
    assert set(entries) == names


def test_the_classes_that_jit_and_compile_return_are_in_the_api_reference() -> None:
    jitted = plugrt.jit(lambda x: x + 1)
    traced = jitted.trace(1.0)
    entries = re.findall(r"^::: ([\w.]+)$", _site().api_pages()["stages"], re.MULTILINE)
    for value in (jitted, traced, traced.lower()):
        assert f"{type(value).__module__}.{type(value).__qualname__}" in entries
    for entry in entries:
        module, _, name = entry.rpartition(".")
        assert hasattr(importlib.import_module(module), name), entry


@pytest.mark.parametrize("page", [str(p.relative_to(ROOT)) for p in pages()])
def test_tests_that_a_page_names_exist(page: str) -> None:
    for file, name in _TEST.findall((ROOT / page).read_text(encoding="utf-8")):
        beside = (ROOT / page).parent / file
        path = beside if beside.exists() else ROOT / file
        assert path.exists(), f"{page} names {file}, which is not there"
        assert not name or name in _functions(path), f"{page} names {file}::{name}"


def _site() -> Any:
    pytest.importorskip("mkdocs", reason="needs mkdocs, which the group `docs` brings")
    return load_script("tools/site.py")


@pytest.mark.parametrize(
    ("source", "here", "target", "leads"),
    [
        ("docs/index.md", "index.md", "quickstart.md", "quickstart.md"),
        ("docs/jax-users.md", "jax-users.md", "../README.md", "index.md"),
        ("tests/README.md", "tests.md", "../CONTRIBUTING.md", "contributing.md"),
        ("examples/README.md", "examples.md", "jit.py", "URL/blob/main/examples/jit.py"),
        ("CONTRIBUTING.md", "contributing.md", "docs/plugins.md", "plugins.md"),
        ("docs/index.md", "index.md", "https://openxla.org", "https://openxla.org"),
    ],
)
def test_links_for_the_repository_lead_somewhere_on_the_site(
    source: str, here: str, target: str, leads: str
) -> None:
    assert _site().link_target(source, here, target, "URL") == leads


def test_pages_that_lie_elsewhere_exist() -> None:
    assert not [source for source in _site().PAGES if not (ROOT / source).exists()]


def test_the_drawings_are_current() -> None:
    drawings = load_script("docs/generate/drawings.py")
    for name, draw in drawings.DRAWINGS.items():
        assert (drawings.ASSETS / f"{name}.svg").read_text(encoding="utf-8") == draw(), "make docs"
