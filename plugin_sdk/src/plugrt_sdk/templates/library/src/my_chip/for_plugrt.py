"""The module of the entry point ``plugrt.plugins``, which plugrt imports."""

from __future__ import annotations

from plugrt.plugins import Availability, LibraryPlugin

from my_chip import NAME, PRIORITY
from my_chip.library import FILE, find_library
from my_chip.probe import find_fault


class MyChipPlugin(LibraryPlugin):
    """Offers the library to plugrt."""

    interface_version = (1, 1)
    """The version of ``plugrt.interface`` that this package is written for."""

    def probe(self) -> Availability:
        fault = find_fault()
        return Availability.no(*fault) if fault else super().probe()

    def library(self) -> str:
        return find_library()


# More arguments, such as the library's create options: plugrt.plugins.LibraryPlugin.
plugin = MyChipPlugin(NAME, FILE, priority=PRIORITY)
