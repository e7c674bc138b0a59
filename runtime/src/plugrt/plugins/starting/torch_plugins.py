"""Loads plugins made for PyTorch/XLA: an object with a library's path and its options.

An entry point of the group ``torch_xla.plugins`` names a class (or an object) with
``library_path()`` and, if it has any, ``client_create_options()``, as PyTorch/XLA's
``DevicePlugin``. Those two are all that is used: torch is needed only where the module imports it.
"""

from __future__ import annotations

import os
from typing import Any

from plugrt.errors import PluginBroken, PluginUnavailable
from plugrt.plugins.library import LibraryPlugin
from plugrt.plugins.record import Record


def make_plugin(record: Record, offered: Any) -> LibraryPlugin:
    """Returns the plugin for the object that an entry point names.

    As for PyTorch/XLA, an `OSError` of the class means that its library or hardware is absent
    (`PluginUnavailable`). Raises `PluginBroken` for an object without ``library_path()``.
    """
    try:
        device_plugin = offered() if isinstance(offered, type) else offered
        if not callable(getattr(device_plugin, "library_path", None)):
            raise PluginBroken(
                f"{record}: its entry point names {offered!r}, which has no library_path()"
            )
        path = os.fspath(device_plugin.library_path())
    except OSError as error:
        raise PluginUnavailable(f"{record} cannot work here: {error}") from error
    options = getattr(device_plugin, "client_create_options", None)
    return LibraryPlugin(record.name, path, options, aliases=record.aliases)
