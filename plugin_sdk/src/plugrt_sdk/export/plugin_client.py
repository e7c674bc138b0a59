"""`create_client`: makes the client of a plugin for another host."""

from __future__ import annotations

from collections.abc import Mapping

from plugrt import config
from plugrt.errors import PluginUnavailable
from plugrt.interface import Client, OptionValue
from plugrt.plugins import Plugin


def create_client(plugin: Plugin, options: Mapping[str, OptionValue]) -> Client:
    """Starts a client as plugrt does: after the probe, with the options of plugrt's settings.

    ``options`` are the host's, and take precedence. Raises `PluginUnavailable` with the probe's
    reason and cure, and the plugin's own errors.
    """
    found = plugin.probe()
    if not found.available:
        why = "; ".join(filter(None, (found.reason, found.cure)))
        raise PluginUnavailable(f"{plugin.name!r} cannot work here: {why}")
    return plugin.create_client({**plugin.client_options(config), **options})
