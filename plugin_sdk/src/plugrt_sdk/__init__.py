"""An SDK for PJRT backends in Python: four methods make a complete client.

`Backend` is what an author writes, `BackendPlugin` is how plugrt finds and starts it; `read_module`
and `result_types` read the programs that it is to compile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plugrt_sdk.lazy_names import names_from

if TYPE_CHECKING:
    from plugrt_sdk.backend import Backend, Handle, Launch
    from plugrt_sdk.client import BackendClient
    from plugrt_sdk.plugin import BackendPlugin
    from plugrt_sdk.reading import read_module, result_types

__all__ = [
    "Backend",
    "BackendClient",
    "BackendPlugin",
    "Handle",
    "Launch",
    "read_module",
    "result_types",
]

if not TYPE_CHECKING:  # a type checker reports a missing name as an error
    # An author's plugin needs `BackendPlugin` to be found, and the client only once it is chosen.
    __getattr__ = names_from(
        __name__,
        {
            "Backend": "plugrt_sdk.backend",
            "BackendClient": "plugrt_sdk.client",
            "BackendPlugin": "plugrt_sdk.plugin",
            "Handle": "plugrt_sdk.backend",
            "Launch": "plugrt_sdk.backend",
            "read_module": "plugrt_sdk.reading",
            "result_types": "plugrt_sdk.reading",
        },
    )
