"""Mutants that do not recover from a lack of memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mutants.tables import TableFaults
from plugrt.errors import Internal, ResourceExhausted
from plugrt_sdk.buffer import BackendBuffer
from plugrt_sdk.conformance.expect import Array
from plugrt_sdk.conformance.mutants.faults import Faults, MutantClient, execute
from plugrt_sdk.loaded_executable import BackendLoadedExecutable


def _other_error(self: MutantClient, array: Array, *rest: Any) -> BackendBuffer:
    try:
        return MutantClient.buffer_from_host(self, array, *rest)
    except ResourceExhausted:
        raise Internal("the device failed") from None


def _stays_full() -> Faults:
    """Returns a mutant that has no memory for anything after it once had too little."""
    full: list[None] = []

    def launch(self: BackendLoadedExecutable, arguments: Any, options: Any = None) -> Any:
        if full:
            raise ResourceExhausted("out of memory")
        try:
            return execute(self, arguments, options)
        except ResourceExhausted:
            full.append(None)
            raise

    return Faults(loaded={"execute": launch})


def _swallow(self: BackendLoadedExecutable, arguments: Any, options: Any = None) -> Any:
    """Returns an array of one element if there is no memory for the result."""
    try:
        return execute(self, arguments, options)
    except ResourceExhausted:
        return [[self.client.buffer_from_host(np.zeros(1), self.addressable_devices[0])]]


MUTANTS: Mapping[str, Faults | TableFaults] = {
    "recovery.put": Faults(client={"buffer_from_host": _other_error}),
    "recovery.launch": _stays_full(),
    "recovery.deferred": Faults(loaded={"execute": _swallow}),
}
