"""Devices of another process: a server owns a backend, and the plugin ``remote`` uses it.

`wire` and `values` define the protocol, `serving` is the server (``plugrt serve``), and the other
modules are the client. A program that connects needs no jaxlib.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plugrt_remote.remote_plugin import plugin

__all__ = ["plugin"]


def __getattr__(name: str) -> object:
    """Imports the plugin when it is first used: JAX imports this package in every process."""
    if name == "plugin":
        from plugrt_remote import remote_plugin

        return remote_plugin.plugin
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
