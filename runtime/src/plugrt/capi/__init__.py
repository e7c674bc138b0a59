"""The client interface over any PJRT C API library, through cffi.

The names below are imported when they are first used, so that cffi costs nothing before.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plugrt.capi.client.create import create_client as create_client
    from plugrt.capi.client.create import create_topology as create_topology
    from plugrt.capi.library.capsule import capsule_of as capsule_of
    from plugrt.capi.library.capsule import library_in as library_in
    from plugrt.capi.loading.library import load_library as load_library
    from plugrt.capi.probing.probe import probe_library as probe_library
    from plugrt.capi.probing.trial_computation import ProbeResult as ProbeResult

_HOMES = {
    "capsule_of": "plugrt.capi.library.capsule",
    "create_client": "plugrt.capi.client.create",
    "create_topology": "plugrt.capi.client.create",
    "load_library": "plugrt.capi.loading.library",
    "library_at": "plugrt.capi.loading.library",
    "library_in": "plugrt.capi.library.capsule",
    "Library": "plugrt.capi.loading.library",
    "probe_library": "plugrt.capi.probing.probe",
    "ProbeResult": "plugrt.capi.probing.trial_computation",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
