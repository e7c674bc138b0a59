"""The C ABI room: the client interface over any PJRT C API library.

The names below are imported when they are first used, so that cffi costs nothing before.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plugrt.capi.capsule import capsule_of as capsule_of
    from plugrt.capi.capsule import library_in as library_in
    from plugrt.capi.create import create_client as create_client
    from plugrt.capi.create import create_topology as create_topology
    from plugrt.capi.loading.library import load_library as load_library
    from plugrt.capi.loading.probe import ProbeResult as ProbeResult
    from plugrt.capi.loading.probe import probe_library as probe_library

_HOMES = {
    "capsule_of": "capsule",
    "create_client": "create",
    "create_topology": "create",
    "load_library": "loading.library",
    "library_at": "loading.library",
    "library_in": "capsule",
    "Library": "loading.library",
    "probe_library": "loading.probe",
    "ProbeResult": "loading.probe",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
