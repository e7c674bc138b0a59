"""The plugin ``reference``: a backend in Python, found through the entry point in pyproject.toml.

plugrt imports this module to learn the plugin's priority; the backend, and with it MLIR's bindings,
is imported when a client is started.
"""

from __future__ import annotations

from plugrt_sdk import Backend, BackendPlugin

__all__ = ["plugin"]


def _create(devices: int = 1) -> Backend:
    from plugrt_reference.backend import Reference

    return Reference(devices)


# Below the cpu's 0: used only where it is asked for by name.
plugin = BackendPlugin("reference", _create, priority=-100)
