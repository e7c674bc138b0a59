"""Why a file cannot be loaded as a PJRT library, read from the file itself."""

from __future__ import annotations

from collections.abc import Mapping

from plugrt.errors import PluginBroken, PluginError


def why_not_loaded(path: str, error: str, hints: Mapping[str, str]) -> PluginError:
    """Returns the exception that says why the loader refused ``path`` and what would help."""
    return PluginBroken(f"{path} cannot be loaded: {error}")
