"""Registration of handlers of custom calls with a library, for clients of a platform."""

from __future__ import annotations

from typing import Any

from plugrt.capi.abi._abi import ffi
from plugrt.capi.callback_threads import expect, mark_callback
from plugrt.capi.extensions.ffi import (
    API_VERSION,
    answer_metadata,
    register_c_handler,
    register_handler,
)
from plugrt.capi.extensions.ffi_frames import handler_version, version_error
from plugrt.capi.loading.library import Library
from plugrt.host_callbacks import call_numbered
from plugrt.interface import HOST_CALLBACK, Handler

_calling_python: set[int] = set()
"""The function tables of the libraries that know `HOST_CALLBACK`."""

_versions: dict[int, tuple[int, int]] = {}
"""The versions of XLA's FFI that libraries have, by their function tables."""


def register(library: Library, target: str, handler: Handler | int, platform: str) -> None:
    """Registers a Python function or the address of a C function, for clients of a platform.

    Raises `Unimplemented` for a C function that is compiled for another version of XLA's FFI: XLA
    says nothing of that, and does not know the handler afterwards.
    """
    where = "Host" if platform == "cpu" else platform.upper()  # XLA's own names
    if isinstance(handler, int):
        theirs = _library_version(library, where)
        found = handler_version(handler, theirs)
        if found != theirs:
            raise version_error(target, found, library.owner, theirs)
        register_c_handler(library, target, handler, where)
    else:
        register_handler(library, target, handler, where)


def _library_version(library: Library, platform: str) -> tuple[int, int]:
    """Returns the version of XLA's FFI in a library, which tells it to handlers."""
    table = int(ffi.cast("uintptr_t", library.api))
    if table not in _versions:
        told: list[tuple[int, int]] = []

        def note(frame: Any) -> Any:
            if answer_metadata(frame):
                metadata = ffi.cast("XLA_FFI_Metadata_Extension*", frame.extension_start).metadata
                version = metadata.api_version
                told.append((version.major_version, version.minor_version))
            return ffi.NULL

        probe = ffi.callback("XLA_FFI_Handler*", mark_callback(note))
        expect(probe)
        register_c_handler(library, "plugrt_version", probe, platform)
        _versions[table] = told[0] if told else API_VERSION
    return _versions[table]


def register_host_callbacks(library: Library, platform: str) -> None:
    """Makes a library call Python functions by their numbers; a second call does nothing."""
    table = int(ffi.cast("uintptr_t", library.api))
    if table not in _calling_python:
        register(library, HOST_CALLBACK, call_numbered, platform)
        _calling_python.add(table)
