"""`Library`: a loaded PJRT library, with its checked function table and extensions."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.ownership import DESTROYS
from plugrt.capi.abi.process_map import AddressMap, file_at, forget_map, is_code
from plugrt.capi.abi.structs import StructSizes
from plugrt.capi.loading.elf import is_cut_short
from plugrt.capi.loading.exception_guard import guard, take_caught
from plugrt.capi.loading.extension_chain import MAX_STRUCT, read_chain
from plugrt.capi.loading.function_table import ExtensionTable, Slot, Table, complete_types
from plugrt.capi.loading.load_errors import no_function, why_not_loaded
from plugrt.errors import (
    FailedPrecondition,
    FileRefused,
    PjrtError,
    PluginBroken,
    PluginIncompatible,
    Unimplemented,
)
from plugrt.interface import OptionValue

if TYPE_CHECKING:
    from plugrt.capi.abi._abi import CData

OLDEST_MINOR = 29
"""The oldest supported minor version (JAX has the same limit)."""

_API_FIELDS = ffi.typeof("PJRT_Api").fields
_SLOTS = tuple(name for name, _ in _API_FIELDS[3:])


def _table_size(slots: int) -> int:
    """Returns the size of a table of that many functions."""
    return int(_API_FIELDS[3 + slots][1].offset)


_BASE_TABLE = _table_size(90)
"""The size of the table at version 0.29, less its two newest slots."""

_REARRANGED_MINOR = 57
"""Version 0.57 moved slots of the table's tail without a new major version."""
_SETTLED_TABLE = _table_size(94)
"""The size of the part that is equal before and after that version."""
_CHAIN_MINOR = 45
"""Before version 0.45 an extension did not state its size."""


class Library(Table):
    """A PJRT library in this process. `load_library` gives one object for each file.

    ``slots`` maps the name of each function of the API to something that can be called with its
    argument struct: the library's function, or, where the library has none, a stub that raises
    `Unimplemented`. ``extensions`` maps the names of its extensions to their structs.
    """

    def __init__(self, api: CData, path: str) -> None:
        self.path = path
        self.api = api
        complete_types()
        addresses = AddressMap()
        self._check_table(addresses)
        version = api.pjrt_api_version
        self.version: tuple[int, int] = (version.major_version, version.minor_version)
        owner = f"{path} (PJRT C API {self.version[0]}.{self.version[1]})"
        minor, size = self.version[1], int(api.struct_size)
        sizes = StructSizes(minor, size)
        if minor < _REARRANGED_MINOR:
            size = min(size, _SETTLED_TABLE)
        super().__init__(api, size, _SLOTS, owner, sizes)
        self.extensions: dict[str, CData] = {}
        if minor >= _CHAIN_MINOR:
            self.extensions = read_chain(api.extension_start, path, addresses)
        self._tables: dict[str, ExtensionTable] = {}
        self._initializing = threading.Lock()
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

    def __repr__(self) -> str:
        return f"<PJRT library {self.path} {self.version[0]}.{self.version[1]}>"

    def extension(self, name: str) -> ExtensionTable:
        """Returns the functions of an extension; `Unimplemented` when the library lacks it."""
        if name not in self._tables:
            if name not in self.extensions:
                raise Unimplemented(
                    f"{self.owner} has no extension {name}; it has {sorted(self.extensions)}"
                )
            base = self.extensions[name]
            self._tables[name] = ExtensionTable(name, base, self)
        return self._tables[name]

    def refuse_calls(
        self, why: str, *, but_frees: bool = False, ends_daemons: bool = False
    ) -> Slot:
        """Makes every later call raise `FailedPrecondition`; returns the function that does.

        For events that make handles of the library invalid, stated by ``why``: the interpreter's
        end, or a fork. With ``but_frees`` destructors of handles can still be called. With
        ``ends_daemons`` a daemon thread gets SystemExit, which ends it silently: another exception
        would print a traceback at a normal exit.
        """

        def stub(args: CData) -> NoReturn:
            if ends_daemons and threading.current_thread() in _find_daemons():
                raise SystemExit
            raise FailedPrecondition(
                f"{self.owner} {why}: its arrays and programs cannot be used any more"
            )

        for table in (self, *self._tables.values()):
            table.slots = {
                name: function if but_frees and _is_free_function(name) else stub
                for name, function in table.slots.items()
            }
        return stub

    def initialize(self) -> None:
        """Initialises the library once; later calls have the first call's outcome.

        After a failure no other function may be called: some libraries abort the process then.
        """
        with self._initializing:
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
        return self.named_values(args, "attributes", "num_attributes")


def _is_free_function(name: str) -> bool:
    """Whether a function destroys a handle, or explains why that failed."""
    return name in DESTROYS or name.startswith("Error_")


# NODELETE because a library whose threads or exit handlers outlive dlclose crashes the interpreter
# (SIGSEGV; https://github.com/openssl/openssl/issues/653 shows an example), and LOCAL so that two
# versions do not share symbols.
_FLAGS = ffi.RTLD_NOW | ffi.RTLD_LOCAL | getattr(ffi, "RTLD_NODELETE", os.RTLD_NODELETE)

# Process-wide: the dynamic linker loads a path once in a process.
_LIBRARIES: dict[str, Library] = {}
# Process-wide: guards `_LIBRARIES`: a library is initialised once.
_LOADING = threading.Lock()


def load_library(
    path: str | os.PathLike[str], *, hints: Mapping[str, str] | None = None
) -> Library:
    """Returns the library at ``path``, loaded once for each real path and never unloaded.

    A name without a folder is searched by the dynamic loader, as in JAX. ``hints`` maps patterns of
    shared libraries' names to their sources, for the message when one is missing. Raises
    `PluginBroken` (cannot be loaded, no table) or `PluginIncompatible` (wrong machine, a version
    that does not fit).
    """
    path = os.fspath(path)
    with _LOADING:
        real = os.path.realpath(path) if os.sep in path else _search(path)
        if real not in _LIBRARIES:
            _LIBRARIES[real] = Library(_open(real, hints or {}), real)
        return _LIBRARIES[real]


def _search(name: str) -> str:
    """Returns the file that the dynamic loader opens for a name; the name where that is unknown."""
    try:
        opened = ffi.dlopen(name, _FLAGS)
    except OSError as error:
        raise PluginBroken(
            f"{name} cannot be loaded: {error}. The dynamic loader searches a name without a "
            "folder: in LD_LIBRARY_PATH, as it was when the program was started, and in the "
            "system's folders. Give the path of the file, or correct that variable"
        ) from error
    try:
        return file_at(int(ffi.cast("uintptr_t", opened.GetPjrtApi))) or name
    except (AttributeError, ffi.error) as error:
        raise no_function(name) from error


def library_at(address: int, name: str) -> Library:
    """Returns the library whose ``PJRT_Api`` is at that address of this process."""
    return Library(ffi.cast("PJRT_Api*", address), name)


def _open(path: str, hints: Mapping[str, str]) -> Any:
    try:
        cut = is_cut_short(path)
    except FileRefused as error:
        raise why_not_loaded(path, str(error), hints) from error
    if cut:
        raise PluginBroken(
            f"{path} is not a shared library, or is cut short: the file ends before what its "
            "header announces. Install the package that brings it again"
        )
    try:
        opened = ffi.dlopen(path, _FLAGS)
    except OSError as error:
        raise why_not_loaded(path, str(error), hints) from error
    forget_map()
    try:
        entry = opened.GetPjrtApi
    except (AttributeError, ffi.error) as error:
        raise no_function(path) from error
    address = int(ffi.cast("uintptr_t", entry))
    if not is_code(address):
        raise PluginBroken(
            f"{path} is a shared library but not a PJRT plugin: its GetPjrtApi is at {address:#x}, "
            "where there is no code to run"
        )
    table = guard(entry, "GetPjrtApi", path)()
    caught = take_caught(table)
    if caught is not None:
        raise PluginBroken(caught)
    return table


def _find_daemons() -> list[threading.Thread]:
    """Returns the daemon threads that Python code started, without libraries' threads."""
    return [t for t in threading.enumerate() if t.daemon and type(t) is not _DUMMY]


_DUMMY = getattr(threading, "_DummyThread", None)
"""The class of threads that Python did not start; a callback on one must get an exception."""
