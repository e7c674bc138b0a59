"""Mutants of plugins, before a client is made."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from plugrt.plugins.library import LibraryPlugin
from plugrt.plugins.plugin import Availability
from plugrt_sdk.conformance.mutants.faults import Faults

_VARIABLE = "PLUGRT_MUTANT_WAS_HERE"


def _start_thread() -> None:
    threading.Thread(target=threading.Event().wait, daemon=True).start()


_opened: list[Any] = []


def _open_device() -> None:
    """Opens a device file that every machine has, and that no program needs."""
    with contextlib.suppress(OSError):
        _opened.append(open("/dev/full", "rb"))  # noqa: SIM115  # it stays open: that is the fault


def _raise_on_import() -> None:
    raise ImportError("libmutant.so.1: cannot open shared object file")


def _sleep(self: Any) -> Availability:
    time.sleep(0.15)
    return Availability.yes()


@dataclass(frozen=True, slots=True)
class NoLibrary:
    """A plugin whose library does not exist."""

    def plugin_of(self) -> LibraryPlugin:
        """Returns the mutant."""
        return LibraryPlugin("mutant", "/nonexistent/libpjrt_mutant.so")


MUTANTS: Mapping[str, Faults | NoLibrary] = {
    "host.import": Faults(on_import=_raise_on_import),
    "host.plugin.valid": Faults(plugin={"aliases": "mutant"}),
    "host.plugin.name": Faults(plugin={"name": ""}),
    "host.import.threads": Faults(on_import=_start_thread),
    "host.import.environment": Faults(
        on_import=lambda: os.environ.__setitem__(_VARIABLE, str(time.time_ns()))
    ),
    "host.import.devices": Faults(on_import=_open_device),
    "host.probe.answer": Faults(plugin={"probe": lambda self: Availability.no("")}),
    "host.probe.time": Faults(plugin={"probe": _sleep}),
    "host.library": NoLibrary(),
}
