"""Registration of handlers of custom calls, and of their types, with a library."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plugrt.callbacks.host_callbacks import CallbackTable
from plugrt.capi.abi import c_values
from plugrt.capi.abi._abi import ffi
from plugrt.capi.extensions.ffi import (
    API_VERSION,
    answer_metadata,
    call_ffi,
    call_in_place,
    register_c_handler,
    register_handler,
)
from plugrt.capi.extensions.ffi_frames import handler_version, version_error
from plugrt.capi.extensions.ffi_staging import call_with_copies
from plugrt.capi.extensions.ffi_states import STAGES
from plugrt.capi.library.callback_threads import expect, mark_callback
from plugrt.capi.library.stream_copies import StreamCopies
from plugrt.capi.loading.library import Library
from plugrt.errors import InvalidArgument, Unimplemented
from plugrt.interface import HOST_CALLBACK, Handler, HandlerStages, HostCallback

if TYPE_CHECKING:
    from plugrt.capi.abi._abi import CData

# Process-wide: a library keeps a handler until the process ends, whichever client registered it.
_callbacks: dict[int, CallbackTable] = {}
"""The functions that programs of a library call, by its function table: it keeps the handler."""
# Process-wide: it guards the table above.
_lock = threading.Lock()


@dataclass(frozen=True)
class _LibraryFfi:
    """The version of XLA's FFI in a library, and the functions that it has for handlers."""

    version: tuple[int, int]
    api: CData | None = None


# Process-wide: the version belongs to a library, and is found by registering a handler permanently.
_found: dict[int, _LibraryFfi] = {}
"""The FFI of each library, by the address of its function table."""


def register(
    library: Library,
    target: str,
    handler: Handler | int | HandlerStages,
    platform: str,
    copies: StreamCopies | None = None,
) -> None:
    """Registers a Python function or C functions, by address, for clients of a platform.

    A Python function gets copies of the program's arrays where ``copies`` makes them, else views;
    C functions get the program's addresses, of any memory.

    Raises `Unimplemented` for a C function that is compiled for another version of XLA's FFI: XLA
    reports no error for it, and does not know the handler afterwards.
    """
    where = xla_platform(platform)
    if isinstance(handler, HandlerStages):
        for name in STAGES:
            _require_version(library, target, getattr(handler, name), where)
        _register_stages(library, target, handler, where)
    elif isinstance(handler, int):
        _require_version(library, target, handler, where)
        register_c_handler(library, target, handler, where)
    else:
        call = call_in_place if copies is None else call_with_copies(copies)
        register_handler(library, target, handler, where, call)


def xla_platform(platform: str) -> str:
    """Returns XLA's own name of a platform."""
    return "Host" if platform == "cpu" else platform.upper()


def register_type(
    library: Library, name: str, type_id: int, type_info: int | None, platform: str
) -> None:
    """Registers a type of handlers' states; see `Client.register_handler_type`."""
    keep: list[CData] = []
    args = ffi.new("XLA_FFI_Type_Register_Args*")
    args.struct_size = ffi.sizeof("XLA_FFI_Type_Register_Args")
    args.name = _span(name, keep)
    args.type_id = ffi.cast("int64_t*", type_id)
    nothing = ffi.new("XLA_FFI_TypeInfo*", {"struct_size": ffi.sizeof("XLA_FFI_TypeInfo")})
    # Workaround for xla-ffi-type-info
    # Not NULL, which version 0.2 reads: the xla_cpu library of PJRT 0.81 ends the process.
    args.type_info = ffi.cast("XLA_FFI_TypeInfo*", type_info) if type_info else nothing
    _call(library, "type_register", f"the FFI type {name!r}", args, xla_platform(platform))


def _register_stages(library: Library, target: str, stages: HandlerStages, platform: str) -> None:
    """Registers a handler with stages by XLA's FFI: the C API's own function accepts only one."""
    keep: list[CData] = []
    args = ffi.new("XLA_FFI_Handler_Register_Args*")
    args.struct_size = ffi.sizeof("XLA_FFI_Handler_Register_Args")
    args.name, args.platform = _span(target, keep), _span(platform, keep)
    for name in STAGES:
        setattr(args, name, ffi.cast("void*", getattr(stages, name) or 0))
    _call(library, "handler_register", f"the handler of {target!r} with stages", args, platform)


def _call(library: Library, function: str, what: str, args: CData, platform: str) -> None:
    """Calls a library's function for handlers; raises `InvalidArgument` with its message."""
    found = _ask(library, platform)
    end = ffi.offsetof("XLA_FFI_Api", function) + ffi.sizeof("void*")
    api = found.api
    if api is None or api.struct_size < end or getattr(api, function) == ffi.NULL:
        raise Unimplemented(
            f"{what} cannot be registered with {library.owner}: its extension FFI, with version "
            f"{found.version[0]}.{found.version[1]} of XLA's FFI, has no function for that "
            f"(XLA_FFI_{function.title()})"
        )
    if (fault := call_ffi(api, function, args, library.owner)) is not None:
        raise InvalidArgument(f"{library.owner} refuses {what}: {fault}")


def _span(text: str, keep: list[CData]) -> tuple[CData, int]:
    data, size = c_values.chars(text)
    keep.append(data)
    return data, size


def _require_version(library: Library, target: str, address: int | None, platform: str) -> None:
    if address is not None:
        theirs = _ask(library, platform)
        found = handler_version(address, theirs.version, theirs.api)
        if found != theirs.version:
            raise version_error(target, found, library.owner, theirs.version)


def _ask(library: Library, platform: str) -> _LibraryFfi:
    """Returns the data that a library passes to the handlers that are registered with it."""
    table = int(ffi.cast("uintptr_t", library.api))
    if table not in _found:
        told: list[_LibraryFfi] = []
        probe = ffi.callback("XLA_FFI_Handler*", mark_callback(_noting(told)))
        expect(probe)
        register_c_handler(library, "plugrt_version", probe, platform)
        if not told:  # the library calls it at some other time
            return _LibraryFfi(API_VERSION)
        # The first call describes the library that registers it; an exported plugin's backend calls
        # again.
        _found[table] = told[0]
    return _found[table]


def _noting(told: list[_LibraryFfi]) -> Callable[[CData], CData]:
    def note(frame: CData) -> CData:
        if answer_metadata(frame):
            metadata = ffi.cast("XLA_FFI_Metadata_Extension*", frame.extension_start).metadata
            version = metadata.api_version
            numbers = (version.major_version, version.minor_version)
            told.append(_LibraryFfi(numbers, None if frame.api == ffi.NULL else frame.api))
        return ffi.NULL

    return note


def register_host_callbacks(
    library: Library,
    callbacks: Mapping[int, HostCallback],
    platform: str,
    copies: StreamCopies | None = None,
) -> None:
    """Makes a library call the Python functions of a program by their numbers."""
    place = int(ffi.cast("uintptr_t", library.api))
    with _lock:  # of two handlers, made by two threads, the library would keep one
        if place not in _callbacks:
            table = CallbackTable()
            register(library, HOST_CALLBACK, table, platform, copies)
            _callbacks[place] = table
    _callbacks[place].add(callbacks)
