"""An SDK for PJRT backends in Python: four methods make a complete client.

`Backend` is what an author writes, `BackendPlugin` is how plugrt finds and starts it; `read_module`
and `result_types` read the programs that it is to compile.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plugrt_sdk.backend import Backend, Handle
    from plugrt_sdk.client import BackendClient
    from plugrt_sdk.plugin import BackendPlugin
    from plugrt_sdk.reading import read_module, result_types

__all__ = [
    "Backend",
    "BackendClient",
    "BackendPlugin",
    "Handle",
    "read_module",
    "result_types",
]

_MODULES = {
    "Backend": "plugrt_sdk.backend",
    "BackendClient": "plugrt_sdk.client",
    "BackendPlugin": "plugrt_sdk.plugin",
    "Handle": "plugrt_sdk.backend",
    "read_module": "plugrt_sdk.reading",
    "result_types": "plugrt_sdk.reading",
}

if not TYPE_CHECKING:  # a type checker reports a missing name as an error

    def __getattr__(name: str) -> Any:
        """Imports a public name when it is first used.

        The plugins of this package and of authors are imported wherever a default backend is
        chosen: they need `BackendPlugin`, and the client, with all of plugrt, only once chosen.
        """
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_MODULES[name]), name)
        globals()[name] = value
        return value
