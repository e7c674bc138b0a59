"""Mutants that end or hang the process in the middle of a check."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk.conformance.mutants.faults import Faults


def _read_null() -> None:
    ctypes.string_at(8)


def _hang_with_lock() -> None:
    """Sleeps in C with the interpreter's lock, so that no Python signal handler runs."""
    ctypes.PyDLL(None).usleep(600_000_000)


def _at_put(act: Callable[[], Any]) -> Faults:
    """Returns a mutant that calls a function when an array of shape (1, 1) is put."""

    def put(self: NumpyBackend, array: Any, device: int) -> Any:
        if array.shape == (1, 1):
            act()
        return NumpyBackend.put(self, array, device)

    return Faults(backend={"put": put})


def _after_a_scalar() -> Faults:
    """Returns a mutant that a 0-d array damages, so that a later array fails."""
    seen: list[None] = []

    def put(self: NumpyBackend, array: Any, device: int) -> Any:
        if array.shape == ():
            seen.append(None)
        if array.shape == (1, 1) and seen:
            _read_null()
        return NumpyBackend.put(self, array, device)

    return Faults(backend={"put": put})


AT = "buffers.put_get.one"
"""The check in which they act."""

KILLERS: Mapping[str, Faults] = {
    "killer.segfault": _at_put(_read_null),
    "killer.segfault_later": _after_a_scalar(),
    "killer.abort": _at_put(os.abort),
    "killer.exit_0": _at_put(lambda: os._exit(0)),
    "killer.exit_3": _at_put(lambda: os._exit(3)),
    "killer.sys_exit": _at_put(lambda: sys.exit(0)),
    "killer.closes_files": _at_put(lambda: os.closerange(3, 1024)),
    "killer.sleep": _at_put(lambda: time.sleep(600)),
    "killer.hang": _at_put(_hang_with_lock),
    "killer.hang_at_start": Faults(on_start=_hang_with_lock),
    "killer.segfault_at_start": Faults(on_start=_read_null),
    "killer.hang_at_import": Faults(on_import=_hang_with_lock),
    "killer.segfault_at_import": Faults(on_import=_read_null),
}
