"""`export_library`: an installed plugin as a shared library that exports ``GetPjrtApi``.

The library is a copy of one that the wheel brings, with the plugin's name written into it. It finds
the Python of the process that loads it and asks `table_address` there; the plugin and plugrt-sdk
must be installed for that Python.
"""

from __future__ import annotations

import ctypes
import operator
import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from plugrt.base.files import write
from plugrt.capi.abi.declarations import API_MINOR
from plugrt.capi.loading.library import OLDEST_MINOR
from plugrt.errors import InvalidArgument, MissingSdkCore, UnknownPlatform
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import Client, OptionValue, Topology
from plugrt.plugins import Plugin
from plugrt.plugins.record import Record, Source
from plugrt.plugins.selection.backends import process_backends
from plugrt.plugins.starting.loading import load
from plugrt_sdk.absent_core import explain_absence
from plugrt_sdk.export.capsule import export_capsule
from plugrt_sdk.export.jax_functions import connect_functions
from plugrt_sdk.export.plugin_client import create_client

MARKER = b"plugrt-exported-plugin-name-is:\0"
"""The bytes before the name in the library (``record`` in ``core/library/library.c``)."""
LONGEST_NAME = 95
_OF_VERSION = ":"
"""The bytes between the name and the version in a library; no plugin's name contains them."""

# Process-wide: guards `_capsules`.
_lock = threading.Lock()
# Process-wide: a library requests its table at each GetPjrtApi, and must get the same one.
_capsules: dict[str, object] = {}


@with_argument_errors
def export_library(name: str, path: str | os.PathLike[str], *, minor: int | None = None) -> Path:
    """Writes the shared library of the installed plugin ``name``, and returns its whole path.

    ``minor`` is the version of the PJRT C API that the library reports, as of `export_capsule`; the
    newest that plugrt declares unless given. Raises `UnknownPlatform` if there is no such plugin,
    `InvalidArgument` for a name that is too long or a version that is not declared,
    `MissingSdkCore` where plugrt-sdk is without it, and the `OSError` of writing. The plugin is not
    imported.
    """
    _find(name)
    if minor is not None and not OLDEST_MINOR <= operator.index(minor) <= API_MINOR:
        raise InvalidArgument(
            f"plugrt export: version 0.{minor} of the PJRT C API is not declared; plugrt-sdk has "
            f"0.{OLDEST_MINOR} to 0.{API_MINOR}"
        )
    encoded = (name if minor is None else f"{name}{_OF_VERSION}{minor}").encode()
    if len(encoded) > LONGEST_NAME:
        raise InvalidArgument(f"the name {name!r} has more than {LONGEST_NAME} bytes")
    template = _template()
    at = template.index(MARKER) + len(MARKER)
    record = encoded.ljust(LONGEST_NAME + 1, b"\0")
    target = Path(path)
    # Replaces an older file, without writing into it: processes that have loaded it would crash.
    write(target, template[:at] + record + template[at + len(record) :], 0o755)
    return target.absolute()


def _template() -> bytes:
    [found] = [file.read_bytes() for file in Path(__file__).parent.glob("_library.*")] or [b""]
    if found.count(MARKER) != 1:
        raise MissingSdkCore(explain_absence("the library that `plugrt export` copies"))
    return found


def table_address(record: str) -> int:
    """Returns the address of the ``PJRT_Api`` of an installed plugin, the same each time.

    ``record`` is the text in the library: the plugin's name, and the version that it reports if
    that is not the newest (``numpy:54``).
    """
    with _lock:
        if record not in _capsules:
            name, _, minor = record.partition(_OF_VERSION)
            factory = PluginFactory(name)
            _capsules[record] = export_capsule(
                factory,
                platform=name,
                minor=int(minor) if minor else API_MINOR,
                topology_factory=factory.create_topology,
            )
            if _is_new_to_jax(name):  # if the host is JAX, no other hook runs
                connect_functions(name, _capsules[record])
        return _address(_capsules[record])


def _is_new_to_jax(platform: str) -> bool:
    """Whether JAX is there and has no backend of that name, whose functions would be replaced."""
    if "jax._src.callback" not in sys.modules:
        return False
    from jax._src import xla_bridge

    return platform not in xla_bridge._backend_factories


class PluginFactory:
    """Makes clients of an installed plugin, which the first call imports."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, **options: OptionValue) -> Client:
        return create_client(self._plugin(), options)

    def create_topology(self, name: str, options: Mapping[str, OptionValue]) -> Topology:
        """Makes a topology of the plugin."""
        return self._plugin().create_topology(name, options)

    def _plugin(self) -> Plugin:
        return load(_find(self._name), process_backends().table)


def _find(name: str) -> Record:
    """Returns the plugin's row for an export; never the row of the library itself."""
    rows = process_backends().table.rows
    ours = [row for row in rows if row.source in (Source.REGISTERED, Source.ENTRY_POINT)]
    for row in ours:
        if row.name == name:
            return row
    known = ", ".join(sorted({row.name for row in ours})) or "none"
    raise UnknownPlatform(f"plugrt export: there is no installed plugin {name!r}; found: {known}")


def _address(capsule: object) -> int:
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    return int(pointer(capsule, b"pjrt_c_api"))
