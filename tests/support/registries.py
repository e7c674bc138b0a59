"""Registries of plugins that a test made up, and settings of an environment it made up."""

from __future__ import annotations

from pathlib import Path

from plugrt.plugins import Backends, Plugin
from plugrt.settings.declarations import Config


def settings(**environ: str) -> Config:
    """Returns the settings that this environment states."""
    return Config(environ)


def registry(*plugins: Plugin, path: Path | None = None, **environ: str) -> Backends:
    """Returns a registry of these plugins and those installed in ``path``, in this environment."""
    made = Backends(settings(**environ), path=[str(path)] if path else [])
    for plugin in plugins:
        made.register(plugin)
    return made
