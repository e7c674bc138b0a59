"""`select_plugin`: makes plugrt and JAX use an installed plugin through the C API."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from plugrt.errors import UnknownPlatform
from plugrt.plugins import LibraryPlugin
from plugrt.plugins.record import Source
from plugrt.plugins.selection.backends import process_backends
from plugrt.plugins.starting.loading import load
from plugrt_sdk.export import export_library
from plugrt_sdk.tracing.environment import name_library


def select_plugin(base: Mapping[str, str], name: str, folder: Path) -> dict[str, str]:
    """Returns an environment with which hosts use the installed plugin ``name``.

    A plugin in Python is exported as a library into ``folder``: plugrt would call it without the C
    API, and nothing would be traced. Raises `UnknownPlatform` if there is no plugin of that name,
    and the errors of its import.
    """
    table = process_backends().table
    rows = [row for row in table.rows if row.name == name]
    if not rows:
        known = ", ".join(sorted({row.name for row in table.rows})) or "none"
        raise UnknownPlatform(f"--plugin {name}: there is no such plugin; found: {known}")
    sources = {row.source for row in rows}
    if Source.ENVIRONMENT in sources or Source.ENTRY_POINT not in sources:
        return {**base, "JAX_PLATFORMS": name}
    [row, *_] = [row for row in rows if row.source is Source.ENTRY_POINT]
    if isinstance(load(row, table), LibraryPlugin):
        return {**base, "JAX_PLATFORMS": name}
    library = export_library(name, folder / f"libpjrt_{name}.so")
    return name_library(base, name, str(library))
