"""Hooks of the documentation's site (``mkdocs.yml``): additional pages, generated pages, links.

READMEs and other papers of the repository become pages unchanged. Links in every page are written
for the repository; here they become links to a page of the site, or to the file in the repository.
"""

from __future__ import annotations

import inspect
import os
import posixpath
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from runpy import run_path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "examples/README.md": "examples.md",
    "examples/plugin-reference/README.md": "plugin-reference.md",
    "plugin_sdk/README.md": "plugin_sdk.md",
    "plugins/cpu/README.md": "plugin-cpu.md",
    "plugins/cuda/README.md": "plugin-cuda.md",
    "plugins/numpy/README.md": "plugin-numpy.md",
    "plugins/remote/README.md": "plugin-remote.md",
    "plugins/tpu/README.md": "plugin-tpu.md",
    "tests/README.md": "tests.md",
    "README.md": "index.md",
}
"""Files outside docs/ to their pages; README is the start page."""
NAMESPACES = ("array_api", "lax", "random", "tree")
"""Modules whose functions are made by decorators: listed from the running package."""
MODULES = (
    "plugrt.debug", "plugrt.ffi", "plugrt.export", "plugrt.serialize_executable",
    "plugrt.sharding", "plugrt.distributed", "plugrt.layout", "plugrt.memory", "plugrt.typing",
    "plugrt.plugins", "plugrt.monitoring", "plugrt.profiler", "plugrt.interface", "plugrt.errors",
    "plugrt_sdk",
)  # fmt: skip
STAGES = {
    "plugrt.transforms.jit_function": ("JitFunction",),
    "plugrt.transforms.pmap": ("PmapFunction",),
    "plugrt.transforms.stages": ("Traced", "Lowered"),
    "plugrt.transforms.compiled_function": ("Compiled",),
    "plugrt.stablehlo.xla_computation": ("XlaComputation",),
    "plugrt.transforms.aot": ("AheadOfTime",),
    "plugrt.programs.compiled_export": ("CompiledExport",),
    "plugrt.programs.compiled_program": ("CompiledProgram",),
}
"""Classes of the objects that `jit`, `pmap` and `compile` return; users do not import them."""
_CONFIG = """\
## plugrt.config

The settings of this process, an attribute for each: [Settings](../configuration.md) lists them.

::: plugrt.settings.options.Options
    options:
      heading_level: 3
      members: [update, override, reset, lookup]

"""
_LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)]*)?\))")
_FENCE = re.compile(r"^(```.*?^```$)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages whose files are outside docs/."""
    for source, page in PAGES.items():
        if page != "index.md":
            text = (ROOT / source).read_text(encoding="utf-8")
            files.append(File.generated(config, page, content=text))
    for name, text in api_pages().items():
        files.append(File.generated(config, f"api/{name}.md", content=text))
    checks = run_path(str(ROOT / "docs/generate/checks.py"))["page"]()
    files.append(File.generated(config, "checks.md", content=checks))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrites the links of a page outside of code; the text search leaves out *Evidence*."""
    here = page.file.src_uri
    source = {p: s for s, p in PAGES.items() if s != "README.md"}.get(here, f"docs/{here}")
    if "Evidence" in [section.title for section in page.ancestors]:
        page.meta["search"] = {"exclude": True}
    page.edit_url = f"{config.repo_url}/edit/main/{source}"

    def link(found: re.Match[str]) -> str:
        return found[1] + link_target(source, here, found[2], str(config.repo_url)) + found[3]

    parts = _FENCE.split(markdown)
    return "".join(p if p.startswith("```") else _LINK.sub(link, p) for p in parts)


def link_target(source: str, here: str, target: str, repository: str) -> str:
    """Returns the target on the site of a link in the file ``source``, relative to ``here``."""
    if re.match(r"\w+:", target) or here.startswith("api/"):
        return target
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    page = PAGES.get(path)
    if page is None and path.startswith("docs/") and path.endswith((".md", ".svg")):
        page = path.removeprefix("docs/")
    if page is None:
        return f"{repository.rstrip('/')}/blob/main/{path}"
    return os.path.relpath(page, posixpath.dirname(here) or ".")


def api_pages() -> dict[str, str]:
    """Returns the pages of the API reference, by name."""
    pages = {"plugrt": _public_names()}
    pages |= {name: _namespace(name) for name in NAMESPACES}
    pages["stages"] = _stages()
    for module in MODULES:
        pages[module.removeprefix("plugrt.")] = f"# {module}\n\n" + _members(module)
    return pages


def _public_names() -> str:
    """The page of the names in ``plugrt`` itself; each is found through its import there."""
    plugrt = import_module("plugrt")
    names = [n for n in plugrt.__all__ if not n.startswith("_")]
    values = [n for n in names if not inspect.ismodule(getattr(plugrt, n))]
    head = f"# plugrt\n\n{inspect.getdoc(plugrt)}\n\n"
    return head + "".join(_reference("plugrt", name, getattr(plugrt, name)) for name in values)


def _stages() -> str:
    """The page of the classes that `STAGES` lists."""
    head = (
        "# From a function to a compiled program\n\nWhat `plugrt.jit`, `plugrt.pmap` and "
        "`plugrt.compile` return, and what their `trace`, `lower` and `compile` lead to.\n\n"
    )
    names = [f"{module}.{name}" for module, names in STAGES.items() for name in names]
    options = "    options:\n      inherited_members: true\n"
    return head + "".join(f"::: {name}\n{options}\n" for name in names)


def _reference(module: str, name: str, value: Any) -> str:
    """Returns the line that mkdocstrings expands; a sentence for a name of another package."""
    home = getattr(value, "__module__", "")
    if name == "config":  # an instance: its class has the methods and settings
        return _CONFIG
    is_alias = not (inspect.isclass(value) or inspect.isroutine(value))  # a type or a constant
    if home.startswith("plugrt") or is_alias:
        return f"::: {module}.{name}\n\n"
    return f"## {name}\n\n`{home}.{name}`, as it is.\n\n"


def _members(module: str) -> str:
    """The page of a module's public names, in the module's order."""
    found = import_module(module)
    names = getattr(found, "__all__", None) or [
        name
        for name, value in vars(found).items()
        if inspect.isclass(value) and value.__module__ == module and not name.startswith("_")
    ]
    entries = [_reference(module, name, getattr(found, name)) for name in names]
    return f"{inspect.getdoc(found)}\n\n" + "".join(entries)


def _namespace(name: str) -> str:
    """The page of a namespace of array functions: signature and docstring of each."""
    module = import_module(f"plugrt.{name}")
    parts = [f"# plugrt.{name}\n\n{inspect.getdoc(module)}\n"]
    for member in sorted(n for n in module.__all__ if not n.startswith("__")):
        value = getattr(module, member)
        if callable(value) and not inspect.isclass(value):
            head = f"```python\n{member}{signature_of(value)}\n```"
            parts.append(f"## {member}\n\n{head}\n\n{_doc(value)}\n")
        else:
            parts.append(f"## {member}\n\n{_constant(value)}\n")
    return "\n".join(parts)


class _Words:
    """An annotation that prints its source text, without quotes."""

    def __init__(self, annotation: Any) -> None:
        self._text = (
            annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
        )

    def __repr__(self) -> str:
        return self._text


def signature_of(function: Any) -> str:
    """Returns the signature with its annotations as in the source; a long one in several lines."""
    signature = inspect.signature(function)
    parameters = [
        p if p.annotation is p.empty else p.replace(annotation=_Words(p.annotation))
        for p in signature.parameters.values()
    ]
    returned = signature.return_annotation
    signature = signature.replace(
        parameters=parameters,
        return_annotation=returned if returned is signature.empty else _Words(returned),
    )
    text = str(signature)
    if len(text) < 80:
        return text
    end = "" if returned is signature.empty else f" -> {_Words(returned)}"
    return "\n".join(["(", *(f"    {part}," for part in _parts(parameters)), f"){end}"])


def _parts(parameters: list[inspect.Parameter]) -> Iterator[str]:
    """Yields the parameters of a signature, and the marks ``/`` and ``*``."""
    before: Any = None
    for parameter in parameters:
        kind = parameter.kind
        if before == parameter.POSITIONAL_ONLY != kind:
            yield "/"
        if kind == parameter.KEYWORD_ONLY and before not in (kind, parameter.VAR_POSITIONAL):
            yield "*"
        yield str(parameter)
        before = kind
    if before == inspect.Parameter.POSITIONAL_ONLY:
        yield "/"


def _doc(value: Any) -> str:
    """Returns the docstring as Markdown: ``code`` in double backticks becomes single ones."""
    return (inspect.getdoc(value) or "").replace("``", "`")


def _constant(value: Any) -> str:
    """Returns a description of a value that is no function: a dtype, a number."""
    return f"`{value!r}`" if not inspect.isclass(value) else _doc(value).partition("\n\n")[0]
