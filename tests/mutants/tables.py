"""Mutants of PJRT libraries: copies of the NumPy backend's exported table, with one change each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.process_map import AddressMap
from plugrt.capi.library.capsule import address_in, capsule_at
from plugrt.capi.loading.extension_chain import read_chain
from plugrt.plugins.library import LibraryPlugin
from plugrt_sdk.conformance.function_table import SLOTS

T = TypeVar("T")
_kept: list[Any] = []
"""Tables and functions, which live as long as the process."""


@dataclass(frozen=True, slots=True)
class TableFaults:
    """A library with one defect: ``change`` is called with a copy of a correct ``PJRT_Api``."""

    change: Callable[[Any], Any]
    devices: int = 1

    def plugin_of(self) -> LibraryPlugin:
        """Returns the mutant as a plugin, with its table in this process."""
        table = ffi.new("PJRT_Api*")
        sound = sound_table()
        ffi.memmove(table, sound, min(int(sound.struct_size), ffi.sizeof("PJRT_Api")))
        self.change(table)
        _kept.append(table)
        found = LibraryPlugin("mutant", c_api=capsule_at(int(ffi.cast("uintptr_t", table))))
        found.conformance_options = {"num_devices": self.devices}
        return found


@cache
def sound_table() -> Any:
    """Returns the table of the NumPy backend."""
    from plugrt_numpy.backend import NumpyBackend
    from plugrt_sdk.client import BackendClient
    from plugrt_sdk.export import export_capsule

    capsule = export_capsule(lambda **options: BackendClient(NumpyBackend(**options)),
                             platform="mutant")  # fmt: skip
    _kept.append(capsule)
    return ffi.cast("PJRT_Api*", address_in(capsule, "mutant"))


def replace_function(
    name: str, make: Callable[[Any], Callable[[Any], Any]], devices: int = 1
) -> TableFaults:
    """Returns a mutant with one function in Python.

    ``make`` is called with the correct function.
    """

    def change(table: Any) -> None:
        kind = ffi.typeof(getattr(table, name))
        function = ffi.callback(kind, make(getattr(sound_table(), name)))
        _kept.append(function)
        setattr(table, name, function)

    return TableFaults(change, devices)


def replace_functions(
    made: Mapping[str, Callable[[Any], Callable[[Any], Any]]], devices: int = 1
) -> TableFaults:
    """Returns a mutant with several functions in Python, like `replace_function`."""
    faults = [replace_function(name, make) for name, make in made.items()]

    def change(table: Any) -> None:
        for fault in faults:
            fault.change(table)

    return TableFaults(change, devices)


def replace_extension_function(
    extension: str, name: str, make: Callable[[Any], Callable[[Any], Any]]
) -> TableFaults:
    """Returns a mutant with an extension's function in Python: hosts use the first of each type."""

    def change(table: Any) -> None:
        kind = f"PJRT_{extension}_Extension*"
        node = read_chain(table.extension_start, "the table", AddressMap())[extension]
        copy = ffi.new(kind, ffi.cast(kind, node)[0])
        sound = getattr(copy, name)
        function = ffi.callback(ffi.typeof(sound), make(sound))
        copy.base.next = table.extension_start
        table.extension_start = ffi.cast("PJRT_Extension_Base*", copy)
        _kept.extend((copy, function))
        setattr(copy, name, function)

    return TableFaults(change)


def keep(made: T) -> T:
    """Keeps an object alive as long as the process, and returns it."""
    _kept.append(made)
    return made


def _empty(table: Any) -> None:
    for name in SLOTS:
        setattr(table, name, ffi.NULL)


SICK: Mapping[str, TableFaults] = {"killer.all_null": TableFaults(_empty)}
"""A table without functions."""
