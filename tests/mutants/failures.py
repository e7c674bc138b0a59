"""Mutants of failing launches: errors reach other launches, and arguments are lost."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from plugrt.errors import Internal, PlugrtError, ResourceExhausted
from plugrt_sdk.conformance.mutants.faults import Faults, execute
from plugrt_sdk.loaded_executable import BackendLoadedExecutable


def _fail_next() -> Faults:
    """Returns a mutant whose next launch fails, too."""
    failed: list[None] = []

    def launch(self: BackendLoadedExecutable, arguments: Any, options: Any = None) -> Any:
        try:
            results = execute(self, arguments, options)
        except ResourceExhausted:
            failed.append(None)
            raise
        if failed:
            failed.clear()
            raise Internal("the stream is in an error state")
        return results

    return Faults(loaded={"execute": launch})


def _fail_elsewhere() -> Faults:
    """Returns a mutant that raises an error in the next other thread that launches."""
    failed: list[int] = []

    def launch(self: BackendLoadedExecutable, arguments: Any, options: Any = None) -> Any:
        own = threading.get_ident()
        if any(thread != own for thread in failed):
            failed.clear()
            raise Internal("another thread ran out of memory")
        try:
            return execute(self, arguments, options)
        except ResourceExhausted:
            failed.append(own)
            raise

    return Faults(loaded={"execute": launch})


def _compute_on_nothing() -> Faults:
    """Returns a mutant that returns an empty array for a failed result.

    It computes zeros from such an array.
    """
    failed: list[Any] = []

    def launch(self: BackendLoadedExecutable, arguments: Any, options: Any = None) -> Any:
        put, device = self.client.buffer_from_host, self.addressable_devices[0]
        if any(buffer in failed for shards in arguments for buffer in shards):
            return [[put(np.zeros(kind.shape, kind.dtype), device)]
                    for kind in self.executable.output_types]  # fmt: skip
        try:
            return execute(self, arguments, options)
        except ResourceExhausted:
            failed.append(put(np.zeros(0, np.float32), device))
            return [[failed[-1]]]

    return Faults(loaded={"execute": launch})


def _donate_first(self: BackendLoadedExecutable, arguments: Any, options: Any = None) -> Any:
    """Deletes the first argument before it checks the others."""
    try:
        return execute(self, arguments, options)
    except PlugrtError:
        arguments[0][0].delete()
        raise


def _spoil_first(self: BackendLoadedExecutable, arguments: Any, options: Any = None) -> Any:
    """Writes to the first argument before it has memory for all results."""
    try:
        return execute(self, arguments, options)
    except ResourceExhausted:
        arguments[0][0]._handle = arguments[0][0]._handle + 1
        raise


MUTANTS: Mapping[str, Faults] = {
    "failures.others": _fail_next(),
    "failures.threads": _fail_elsewhere(),
    "failures.passed_on": _compute_on_nothing(),
    "failures.donation.refused": Faults(loaded={"execute": _donate_first}),
    "failures.donation.failed": Faults(loaded={"execute": _spoil_first}),
}
