"""The module of the entry point ``plugrt.plugins``, which plugrt imports."""

from __future__ import annotations

from typing import Any

from plugrt.plugins import Availability
from plugrt_sdk import Backend, BackendPlugin

from my_chip import NAME, PRIORITY
from my_chip.probe import find_fault


class MyChipPlugin(BackendPlugin):
    """Offers the device to plugrt, and through the SDK's export to other hosts."""

    interface_version = (1, 1)
    """The version of ``plugrt.interface`` that this package is written for."""

    def probe(self) -> Availability:
        fault = find_fault()
        return Availability.no(*fault) if fault else Availability.yes()


def create_backend(**options: Any) -> Backend:
    """Returns the backend. ``options`` are the create options that users set for the platform."""
    from my_chip.backend import MyChipBackend

    return MyChipBackend(**options)


plugin = MyChipPlugin(NAME, create_backend, priority=PRIORITY)
