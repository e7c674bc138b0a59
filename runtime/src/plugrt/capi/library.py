"""A loaded PJRT library: its table of functions behind guards, and its errors as exceptions."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from plugrt.capi import values
from plugrt.capi._abi import ffi
from plugrt.capi.chain import MAX_STRUCT, read_chain
from plugrt.capi.diagnose import why_not_loaded
from plugrt.capi.maps import AddressMap
from plugrt.errors import (
    PjrtError,
    PluginBroken,
    PluginIncompatible,
    Unimplemented,
    error_from_code,
)
from plugrt.interface import OptionValue

Slot = Callable[[Any], Any]

OLDEST_MINOR = 29
"""The oldest minor version that hosts accept (JAX has the same limit)."""

_API_FIELDS = ffi.typeof("PJRT_Api").fields
_SLOTS: dict[str, int] = {name: field.offset for name, field in _API_FIELDS[3:]}
_BASE_TABLE = _SLOTS["Executable_OutputElementTypes"]
"""The size of the table at version 0.29, less its two newest slots."""

_STRUCTS: dict[str, tuple[Any, int]] = {}


def struct_type(name: str) -> tuple[Any, int]:
    """Returns (pointer type, size to state) of a struct; the size ends with its last field."""
    try:
        return _STRUCTS[name]
    except KeyError:
        fields = ffi.typeof(name).fields
        last = fields[-1][1]
        made = (ffi.typeof(name + "*"), last.offset + ffi.sizeof(last.type))
        return _STRUCTS.setdefault(name, made)


def new_struct(name: str) -> Any:
    """Returns a zeroed struct that states its size."""
    kind, size = struct_type(name)
    made = ffi.new(kind)
    made.struct_size = size
    return made


class Library:
    """A PJRT library in this process. `load_library` gives one object for each file.

    ``slots`` maps the name of each function of the API to something that can be called with its
    argument struct: the library's function, or, where the library has none, a stub that raises
    `Unimplemented`. ``extensions`` maps the names of its extensions to their structs.
    """

    def __init__(self, api: Any, path: str) -> None:
        self.path = path
        self.api = api
        addresses = AddressMap()
        self._check_table(addresses)
        version = api.pjrt_api_version
        self.version: tuple[int, int] = (version.major_version, version.minor_version)
        self.slots: dict[str, Slot] = {}
        self.missing: list[str] = []
        for name, offset in _SLOTS.items():
            self.slots[name] = self._slot(name, offset, addresses)
        self.extensions = read_chain(api.extension_start, path, addresses)
        self._initialized = threading.Lock()
        self._initialize_outcome: PjrtError | bool = False

    def _check_table(self, addresses: AddressMap) -> None:
        api, path = self.api, self.path
        address = int(ffi.cast("uintptr_t", api))
        if address == 0:
            raise PluginBroken(f"{path}: GetPjrtApi returned NULL instead of a table of functions")
        if not addresses.readable(address, _BASE_TABLE):
            raise PluginBroken(f"{path}: GetPjrtApi returned {address:#x}, which cannot be read")
        version = api.pjrt_api_version
        major, minor = version.major_version, version.minor_version
        if major != 0 or minor < OLDEST_MINOR:
            raise PluginIncompatible(
                f"{path}: the library states version {major}.{minor} of the PJRT C API; plugrt "
                f"drives 0.{OLDEST_MINOR} and later 0.x versions. Install a "
                f"{'matching' if major else 'newer'} version of the package that brings it"
            )
        size = api.struct_size
        if size < _BASE_TABLE or size > MAX_STRUCT or not addresses.readable(address, size):
            raise PluginIncompatible(
                f"{path}: the library states a table of {size} bytes; at version "
                f"{major}.{minor} at least {_BASE_TABLE} were expected"
            )

    def _slot(self, name: str, offset: int, addresses: AddressMap) -> Slot:
        if offset + 8 <= self.api.struct_size:
            function: Slot = getattr(self.api, name)
            address = int(ffi.cast("uintptr_t", function))
            if address:
                if not addresses.readable(address, 1):
                    raise PluginBroken(
                        f"{self.path}: PJRT_{name} is at {address:#x}, which cannot be read"
                    )
                return function
        self.missing.append(name)

        def stub(args: Any) -> NoReturn:
            raise Unimplemented(
                f"PJRT_{name} is not implemented by {self.path} "
                f"(PJRT C API {self.version[0]}.{self.version[1]})"
            )

        return stub

    def __repr__(self) -> str:
        return f"<PJRT library {self.path} {self.version[0]}.{self.version[1]}>"

    def has(self, name: str) -> bool:
        """Whether the library has that function (which may still report UNIMPLEMENTED)."""
        return name not in self.missing

    def call(self, name: str, **inputs: Any) -> Any:
        """Calls a function with these fields; returns its argument struct, results filled in.

        Raises the `PjrtError` that the library reports. What ``inputs`` point to is alive until
        the call returns.
        """
        args = new_struct(f"struct PJRT_{name}_Args")
        for field, value in inputs.items():
            setattr(args, field, value)
        error = self.slots[name](args)
        if error:
            raise self.take_error(error)
        return args

    def take_error(self, error: Any) -> PjrtError:
        """Returns the exception for a ``PJRT_Error*`` and frees it."""
        try:
            return error_from_code(self._error_code(error), self._error_message(error))
        finally:
            self._destroy_error(error)

    def _error_code(self, error: Any) -> int:
        args = new_struct("struct PJRT_Error_GetCode_Args")
        args.error = error
        try:
            second = self.slots["Error_GetCode"](args)
        except Unimplemented:
            return 2
        if second:
            self._destroy_error(second)
            return 2
        return int(args.code)

    def _error_message(self, error: Any) -> str:
        args = new_struct("struct PJRT_Error_Message_Args")
        args.error = error
        try:
            self.slots["Error_Message"](args)
        except Unimplemented:
            return "(the library gives no message)"
        return values.text(args.message, args.message_size)

    def _destroy_error(self, error: Any) -> None:
        args = new_struct("struct PJRT_Error_Destroy_Args")
        args.error = error
        if self.has("Error_Destroy"):
            self.slots["Error_Destroy"](args)

    def initialize(self) -> None:
        """Initialises the library once; the second call gives the first one's outcome.

        Nothing else may be called after a failure: a real library aborts the process then.
        """
        with self._initialized:
            if self._initialize_outcome is False:
                try:
                    self.call("Plugin_Initialize")
                    self._initialize_outcome = True
                except PjrtError as error:
                    self._initialize_outcome = error
            if isinstance(self._initialize_outcome, PjrtError):
                raise self._initialize_outcome

    def attributes(self) -> Mapping[str, OptionValue]:
        """Returns ``PJRT_Plugin_Attributes``; empty where the library has none."""
        try:
            args = self.call("Plugin_Attributes")
        except Unimplemented:
            return {}
        return values.read_named_values(args.attributes, args.num_attributes)


_LIBRARIES: dict[str, Library] = {}
_LOADING = threading.Lock()


def load_library(
    path: str | os.PathLike[str], *, hints: Mapping[str, str] | None = None
) -> Library:
    """Returns the library at ``path``, loaded once for each real path and never unloaded.

    ``hints`` maps the name of a shared library to the package that brings it, for the message
    when it is missing. Raises `PluginBroken` (cannot be loaded, no table) or
    `PluginIncompatible` (wrong machine, a version that does not fit).
    """
    real = os.path.realpath(path)
    with _LOADING:
        if real not in _LIBRARIES:
            _LIBRARIES[real] = Library(_open(real, hints or {}), real)
        return _LIBRARIES[real]


def library_at(address: int, name: str) -> Library:
    """Returns the library whose ``PJRT_Api`` is at that address of this process."""
    return Library(ffi.cast("PJRT_Api*", address), name)


def _open(path: str, hints: Mapping[str, str]) -> Any:
    # NODELETE because a library whose threads or exit handlers outlive dlclose ends the
    # interpreter with a segmentation fault, and LOCAL so that two versions do not mix.
    flags = ffi.RTLD_NOW | ffi.RTLD_LOCAL | getattr(ffi, "RTLD_NODELETE", os.RTLD_NODELETE)
    try:
        opened = ffi.dlopen(path, flags)
    except OSError as error:
        raise why_not_loaded(path, str(error), hints) from error
    try:
        entry = opened.GetPjrtApi
    except AttributeError as error:
        raise PluginBroken(
            f"{path} is a shared library but not a PJRT plugin: it has no function GetPjrtApi"
        ) from error
    return entry()
