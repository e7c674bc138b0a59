"""Mutants of ownership, threads, declarations and several devices."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from plugrt.errors import InvalidArgument, PlugrtError
from plugrt.interface import CompileOptions, MemoryAnalysis, Program, ReadyEvent
from plugrt_sdk.buffer import BackendBuffer
from plugrt_sdk.conformance.expect import Array
from plugrt_sdk.conformance.mutants.faults import Faults, MutantClient, execute
from plugrt_sdk.loaded_executable import BackendLoadedExecutable
from plugrt_sdk.numpy_backend.backend import NumpyBackend
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
    """Deletes the results of a launch with its first argument, in whose memory they are."""
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


def _launch_deleted(self: BackendLoadedExecutable, arguments: Any, options: Any = None) -> Any:
    was, self._deleted = self._deleted, False
    try:
        return execute(self, arguments, options)
    finally:
        self._deleted = was


def _any_client(self: BackendLoadedExecutable, arguments: Any, options: Any = None) -> Any:
    """Takes arrays of other clients as its own."""
    mine = [
        [self.client.buffer_from_host(buffer.to_host(), device)
         for buffer, device in zip(shards, self.addressable_devices, strict=False)]
        for shards in arguments
    ]  # fmt: skip
    return execute(self, mine, options)


def _donate_all(self: BackendLoadedExecutable, arguments: Any, options: Any = None) -> Any:
    """Overwrites the first argument of a donating program, also where the host keeps it."""
    results = execute(self, arguments, options)
    if _ALIASED in _text_of(self) and not arguments[0][0].is_deleted():
        arguments[0][0]._handle = arguments[0][0]._handle + 1
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


# --- threads, events, errors ---------------------------------------------------------------------


def _one_slot() -> Faults:
    """Returns a mutant whose launches on other threads than the main one share their arguments."""
    place: list[Any] = []

    def compile(self: NumpyBackend, program: Program, options: CompileOptions) -> Any:
        launch = NumpyBackend.compile(self, program, options)

        def run(*given: Any) -> Any:
            if threading.current_thread() is threading.main_thread():
                return launch(*given)
            place.append(given)
            return launch(*place[0])

        return run

    return Faults(backend={"compile": compile})


class _CallsTwice(ReadyEvent):
    """An event that tells its callback twice."""

    def on_ready(self, callback: Any) -> None:
        ReadyEvent.on_ready(self, callback)
        ReadyEvent.on_ready(self, callback)


class _NotYet(ReadyEvent):
    """An event that is ready when somebody waited for it, and not before."""

    def __init__(self, waited: set[int], key: int) -> None:
        super().__init__()
        self._waited, self._key = waited, key

    def is_ready(self) -> bool:
        return self._key in self._waited

    def wait(self) -> None:
        self._waited.add(self._key)


_waited: set[int] = set()


def _poisoned() -> Faults:
    """Returns a mutant that computes wrong numbers once it has refused three programs."""
    refused: list[None] = []

    def compile(self: MutantClient, program: Program, options: CompileOptions) -> Any:
        try:
            return MutantClient.compile(self, program, options)
        except PlugrtError:
            refused.append(None)
            raise

    def launch(self: BackendLoadedExecutable, arguments: Any, options: Any = None) -> Any:
        results: Any = execute(self, arguments, options)
        if len(refused) > 3:
            results[0][0]._handle = results[0][0]._handle + 1
        return results

    return Faults(client={"compile": compile}, loaded={"execute": launch})


def _stale_chain() -> Faults:
    """Returns a mutant whose twentieth launch takes the nineteenth's argument."""
    seen: list[Any] = []

    def launch(self: BackendLoadedExecutable, arguments: Any, options: Any = None) -> Any:
        given = list(arguments)
        if len(seen) == 20:
            given[0] = seen[-1]
        seen.append(given[0])
        return execute(self, given, options)

    return Faults(loaded={"execute": launch})


def _wordless(self: MutantClient, program: Program, options: CompileOptions) -> Any:
    try:
        return MutantClient.compile(self, program, options)
    except PlugrtError:
        raise InvalidArgument("failed") from None


# --- declarations ---------------------------------------------------------------------------------


def _liar(capability: str, **members: Any) -> Faults:
    """Returns a mutant that declares what it lacks."""
    return Faults(capabilities={capability: True}, **members)


def _load_anything(self: MutantClient, serialized: bytes, options: Any = None) -> Any:
    from plugrt_sdk.testing.programs import ADD

    return self.compile(Program(ADD.encode()), CompileOptions())


# --- several devices ------------------------------------------------------------------------------


def _on_first(self: MutantClient, program: Program, options: CompileOptions) -> Any:
    """Compiles programs of one replica for the first device, whatever was asked for."""
    if options.num_replicas == options.num_partitions == 1:
        options = CompileOptions()
    return MutantClient.compile(self, program, options)


def _rotated(applies: str) -> Faults:
    """Returns a mutant that gives each device its neighbour's results, in programs with a word."""

    def compile(self: NumpyBackend, program: Program, options: CompileOptions) -> Any:
        launch = NumpyBackend.compile(self, program, options)
        if options.num_replicas * options.num_partitions == 1 or applies not in str(
            read_module(program)
        ):
            return launch

        def run(*given: Any) -> Sequence[Any]:
            return [[*shards[1:], shards[0]] for shards in launch(*given)]

        return run

    return Faults(backend={"compile": compile}, devices=2)


def _first_sum_again(once: bool) -> Faults:
    """Returns a mutant whose sums over devices are its own part, or those of the first launch."""
    first: list[Any] = []

    def compile(self: NumpyBackend, program: Program, options: CompileOptions) -> Any:
        launch = NumpyBackend.compile(self, program, options)
        if "stablehlo.all_reduce" not in str(read_module(program)):
            return launch

        def run(arguments: Any, *rest: Any) -> Any:
            if once:
                first.append(launch(arguments, *rest))
                return first[0]
            return [list(shards) for shards in arguments]

        return run

    return Faults(backend={"compile": compile}, devices=2)


_ownership: Mapping[str, Faults] = {
    "deleted_argument": Faults(loaded={"execute": _with_deleted}),
    "results_live": Faults(
        loaded={"execute": _borrowed_results}, buffer={"delete": _delete_borrowers}
    ),
    "deleted_program": Faults(loaded={"execute": _launch_deleted}),
    "two_clients": Faults(loaded={"execute": _any_client}),
    "donation": Faults(capabilities={"donation": False}, loaded={"execute": _donate_all}),
    "donation.kept": Faults(loaded={"execute": _donate_all}),
    "argument_unchanged": Faults(loaded={"execute": _in_place}),
    "leak": Faults(backend={"put": _leak}),
}

_behaviour: Mapping[str, Faults] = {
    "threads": _one_slot(),
    "events": Faults(result={"ready_event": lambda self: _CallsTwice()}),
    "after_errors": _poisoned(),
    "order": _stale_chain(),
    "error_text": Faults(client={"compile": _wordless}),
    "synchronous": Faults(result={"ready_event": lambda self: _NotYet(_waited, id(self))}),
}

_declared: Mapping[str, Faults] = {
    "serialization": Faults(executable={"serialize": lambda self: b"saved"}),
    "serialization.nonsense": Faults(client={"deserialize_executable": _load_anything}),
    "cost_analysis": _liar(
        "cost_analysis", executable={"cost_analysis": lambda self: {"flops": 1}}
    ),
    "memory_analysis": Faults(executable={"memory_analysis": lambda self: MemoryAnalysis()}),
    "optimized_program": _liar(
        "optimized_program", executable={"optimized_program": lambda self: Program(b"")}
    ),
    "fingerprint": Faults(
        capabilities={"fingerprint": True}, executable={"fingerprint": lambda self: b"same"}
    ),
    "memory_stats": Faults(
        capabilities={"memory_stats": True},
        device={"memory_stats": lambda self: {"bytes_in_use": 7}},
    ),
    "unsafe_pointer": Faults(
        capabilities={"unsafe_pointer": True}, buffer={"unsafe_pointer": lambda self: 4096}
    ),
    "dlpack": Faults(
        buffer={"to_dlpack": lambda self, stream=None: np.zeros(3, np.float32).__dlpack__()}
    ),
    "zero_copy_get": Faults(
        backend={"view": lambda self, handle: np.array(handle)},
    ),
    "stablehlo_version": Faults(
        capabilities={
            "stablehlo_minimum_version": (1, 99, 0),
            "stablehlo_current_version": (1, 0, 0),
        }
    ),
}

_scales: Mapping[str, Faults] = {
    "each_device": Faults(client={"compile": _on_first}, devices=2),
    "replicas": _rotated("stablehlo.add"),
    "all_reduce": _first_sum_again(once=False),
    "all_reduce.repeated": _first_sum_again(once=True),
    "partitions": _rotated("sdy.mesh"),
    "devices_of_program": Faults(
        loaded={"addressable_devices": property(lambda self: self.client.devices())}, devices=2
    ),
}

BEHAVING: Mapping[str, Faults] = {
    **{f"ownership.{name}": faults for name, faults in _ownership.items()},
    **{f"behaviour.{name}": faults for name, faults in _behaviour.items()},
    **{f"declared.{name}": faults for name, faults in _declared.items()},
    **{f"scales.{name}": faults for name, faults in _scales.items()},
}
