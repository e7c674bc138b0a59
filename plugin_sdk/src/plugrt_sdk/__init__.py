"""An SDK for PJRT backends in Python: four methods make a complete client.

An author subclasses `Backend`; plugrt finds and starts it by a `BackendPlugin`; `read_module` and
`result_types` read the programs to compile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plugrt_sdk.lazy_names import names_from

if TYPE_CHECKING:
    from plugrt_sdk.backend import Backend
    from plugrt_sdk.client import BackendClient
    from plugrt_sdk.compiled import Compiled, Handle, Launch
    from plugrt_sdk.event import PendingEvent
    from plugrt_sdk.handler_instances import instantiate
    from plugrt_sdk.layouts import read_layouts
    from plugrt_sdk.plugin import BackendPlugin
    from plugrt_sdk.reading import read_aliases, read_module, result_types
    from plugrt_sdk.saved_programs import SavesPrograms

__all__ = [
    "Backend",
    "BackendClient",
    "BackendPlugin",
    "Compiled",
    "Handle",
    "Launch",
    "PendingEvent",
    "SavesPrograms",
    "instantiate",
    "read_aliases",
    "read_layouts",
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
            "Compiled": "plugrt_sdk.compiled",
            "Handle": "plugrt_sdk.compiled",
            "Launch": "plugrt_sdk.compiled",
            "PendingEvent": "plugrt_sdk.event",
            "SavesPrograms": "plugrt_sdk.saved_programs",
            "instantiate": "plugrt_sdk.handler_instances",
            "read_aliases": "plugrt_sdk.reading",
            "read_layouts": "plugrt_sdk.layouts",
            "read_module": "plugrt_sdk.reading",
            "result_types": "plugrt_sdk.reading",
        },
    )
