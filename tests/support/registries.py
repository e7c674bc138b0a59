"""Registries of plugins that a test made up."""

from __future__ import annotations

from pathlib import Path

from plugrt.plugins.plugin import Plugin
from plugrt.plugins.selection.backends import Backends
from plugrt.settings.declarations import Config


def registry(*plugins: Plugin, path: Path | None = None, **environ: str) -> Backends:
    """Returns a registry of these plugins and those installed in ``path``, in this environment."""
    made = Backends(Config(environ), path=[str(path)] if path else [])
    for plugin in plugins:
        made.register(plugin)
    return made
