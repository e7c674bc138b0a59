"""Mutants of deleted and donated arrays and programs, and of several clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from plugrt.interface import CompileOptions, Program
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk.buffer import BackendBuffer
from plugrt_sdk.conformance.expect import Array
from plugrt_sdk.conformance.mutants.faults import Faults, execute
from plugrt_sdk.loaded_executable import BackendLoadedExecutable
from plugrt_sdk.reading import read_module

_ALIASED = "tf.aliasing_output"


def _with_deleted(self: BackendLoadedExecutable, arguments: Any, options: Any = None) -> Any:
    """Launches with zeros for a deleted argument."""
    client = self.client
    whole = [
        [client.buffer_from_host(np.zeros(b.shape, b.dtype), b.device) if b.is_deleted() else b
         for b in shards]
        for shards in arguments
    ]  # fmt: skip
    return execute(self, whole, options)


def _borrowed_results(self: BackendLoadedExecutable, arguments: Any, options: Any = None) -> Any:
    """Deletes the results of a launch with its first argument, which shares their memory."""
    results = execute(self, arguments, options)
    if arguments:
        borrowed = _borrowers.setdefault(id(arguments[0][0]), [])
        borrowed.extend(buffer for shards in results for buffer in shards)
    return results


_borrowers: dict[int, list[Any]] = {}


def _delete_borrowers(self: BackendBuffer) -> None:
    for result in _borrowers.pop(id(self), ()):
        BackendBuffer.delete(result)
    BackendBuffer.delete(self)


_constants: dict[int, Any] = {}


def _give_again(self: BackendLoadedExecutable, arguments: Any, options: Any = None) -> Any:
    """Launches a program without arguments once, and returns these results in each launch."""
    if arguments:
        return execute(self, arguments, options)
    return _constants.setdefault(id(self), execute(self, arguments, options))


def _launch_deleted(self: BackendLoadedExecutable, arguments: Any, options: Any = None) -> Any:
    was, self._deleted = self._deleted, False
    try:
        return execute(self, arguments, options)
    finally:
        self._deleted = was


def _any_client(self: BackendLoadedExecutable, arguments: Any, options: Any = None) -> Any:
    """Accepts arrays of other clients."""
    mine = [
        [self.client.buffer_from_host(buffer.to_host(), device)
         for buffer, device in zip(shards, self.addressable_devices, strict=False)]
        for shards in arguments
    ]  # fmt: skip
    return execute(self, mine, options)


def _donate_one(self: NumpyBackend, program: Program, options: CompileOptions) -> Any:
    """Donates only the first of the donated arguments."""
    return list(NumpyBackend.donated(self, program, options))[:1]


def _donate_all(self: BackendLoadedExecutable, arguments: Any, options: Any = None) -> Any:
    """Overwrites the first argument of a donating program, also if the host keeps it."""
    results = execute(self, arguments, options)
    if _ALIASED in _text_of(self) and not arguments[0][0].is_deleted():
        arguments[0][0]._handle = arguments[0][0]._handle + 1
    return results


def _revive(self: BackendLoadedExecutable, arguments: Any, options: Any = None) -> Any:
    """Launches with zeros for a donated argument, and donates the others."""
    return _with_deleted(self, arguments, options)


def _add_three(self: BackendLoadedExecutable, arguments: Any, options: Any = None) -> Any:
    """Computes a wrong sum, and donates, if one array is both arguments."""
    if len(arguments) < 2 or arguments[0][0] is not arguments[1][0]:
        return execute(self, arguments, options)
    buffer = arguments[0][0]
    copy = self.client.buffer_from_host(2 * buffer.to_host(), buffer.device)
    results = execute(self, [arguments[0], (copy,)], options)
    buffer.delete()
    return results


def _text_of(loaded: BackendLoadedExecutable) -> str:
    return str(read_module(loaded.executable.compiled.program))


def _in_place(self: BackendLoadedExecutable, arguments: Any, options: Any = None) -> Any:
    """Writes the result over the first argument."""
    results: Any = execute(self, arguments, options)
    if results and arguments:
        arguments[0][0]._handle = results[0][0]._handle
    return results


_kept: list[Array] = []


def _leak(self: NumpyBackend, array: Array, device: int) -> Array:
    copy = array.copy()
    _kept.append(copy)
    return copy


MUTANTS: Mapping[str, Faults] = {
    "ownership.deleted_argument": Faults(loaded={"execute": _with_deleted}),
    "ownership.results_live": Faults(
        loaded={"execute": _borrowed_results}, buffer={"delete": _delete_borrowers}
    ),
    "ownership.results_are_two": Faults(loaded={"execute": _give_again}),
    "ownership.deleted_program": Faults(loaded={"execute": _launch_deleted}),
    "ownership.two_clients": Faults(loaded={"execute": _any_client}),
    "ownership.donation": Faults(capabilities={"donation": False}, loaded={"execute": _donate_all}),
    "ownership.donation.both": Faults(backend={"donated": _donate_one}),
    "ownership.donation.stated": Faults(
        executable={"donated_parameters": property(lambda self: [])}
    ),
    "ownership.donation.kept": Faults(loaded={"execute": _donate_all}),
    "ownership.donation.again": Faults(loaded={"execute": _revive}),
    "ownership.donation.twice": Faults(loaded={"execute": _add_three}),
    "ownership.argument_unchanged": Faults(loaded={"execute": _in_place}),
    "ownership.leak": Faults(backend={"put": _leak}),
}
