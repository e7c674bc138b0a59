"""Mutants of capabilities: declared ones are missing, or present ones are not declared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mutants.puts import flip
from plugrt.errors import InvalidArgument
from plugrt.interface import CompileOptions, MemoryAnalysis, Program
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk.buffer import BackendBuffer
from plugrt_sdk.conformance.mutants.faults import Faults, MutantClient, execute, recast
from plugrt_sdk.executable import BackendExecutable
from plugrt_sdk.loaded_executable import BackendLoadedExecutable


def liar(capability: str, **members: Any) -> Faults:
    """Returns a mutant that declares a capability that it lacks."""
    return Faults(capabilities={capability: True}, **members)


def _load_anything(self: MutantClient, serialized: bytes, options: Any = None) -> Any:
    from plugrt_sdk.testing.programs import ADD

    return self.compile(Program(ADD.encode()), CompileOptions())


def _load_flipped(self: MutantClient, serialized: bytes, options: Any = None) -> Any:
    """Loads programs whose results of int16 and of 65 elements are wrong."""

    def run(loaded: Any, *given: Any) -> Any:
        results = execute(loaded, *given)
        for shards in results:
            for buffer in shards:
                assert isinstance(buffer, BackendBuffer)
                if buffer.dtype == np.int16 and tuple(buffer.shape) == (65,):
                    buffer._handle = flip(buffer._handle)
        return results

    loaded = MutantClient.deserialize_executable(self, serialized, options)
    return recast(loaded, BackendLoadedExecutable, {"execute": run})


_first_saved: list[bytes] = []


def _save_first(self: BackendExecutable) -> bytes:
    """Saves each program as the first saved program."""
    _first_saved.append(BackendExecutable.serialize(self))
    return _first_saved[0]


_kept: list[bytes] = []


def _save_number(self: BackendExecutable) -> bytes:
    """Keeps each program in this process, and saves its number."""
    _kept.append(BackendExecutable.serialize(self))
    return b"kept %d" % (len(_kept) - 1)


def _load_number(self: MutantClient, serialized: bytes, options: Any = None) -> Any:
    word, _, number = serialized.partition(b" ")
    if word != b"kept" or int(number) >= len(_kept):
        raise InvalidArgument("there is no such program")
    return MutantClient.deserialize_executable(self, _kept[int(number)], options)


def _stats_of_first(self: NumpyBackend, device: int) -> Mapping[str, int]:
    return NumpyBackend.memory_stats(self, 0)


def _stats_with_low_peak(self: NumpyBackend, device: int) -> Mapping[str, int]:
    return {**NumpyBackend.memory_stats(self, device), "peak_bytes_in_use": 1}


MUTANTS: Mapping[str, Faults] = {
    "declared.serialization": Faults(executable={"serialize": lambda self: b"saved"}),
    "declared.serialization.results": Faults(client={"deserialize_executable": _load_flipped}),
    "declared.serialization.own": Faults(executable={"serialize": _save_first}),
    "declared.serialization.process": Faults(
        executable={"serialize": _save_number}, client={"deserialize_executable": _load_number}
    ),
    "declared.serialization.nonsense": Faults(client={"deserialize_executable": _load_anything}),
    "declared.cost_analysis": liar(
        "cost_analysis", executable={"cost_analysis": lambda self: {"flops": 1}}
    ),
    "declared.memory_analysis": Faults(
        executable={"memory_analysis": lambda self: MemoryAnalysis()}
    ),
    "declared.optimized_program": liar(
        "optimized_program", executable={"optimized_program": lambda self: Program(b"")}
    ),
    "declared.fingerprint": Faults(
        capabilities={"fingerprint": True}, executable={"fingerprint": lambda self: b"same"}
    ),
    "declared.memory_stats.devices": Faults(devices=2, backend={"memory_stats": _stats_of_first}),
    "declared.memory_stats.bounds": Faults(backend={"memory_stats": _stats_with_low_peak}),
    "declared.memory_stats": Faults(
        capabilities={"memory_stats": True},
        device={"memory_stats": lambda self: {"bytes_in_use": 7}},
    ),
    "declared.unsafe_pointer": Faults(
        capabilities={"unsafe_pointer": True}, buffer={"unsafe_pointer": lambda self: 4096}
    ),
    "declared.dlpack": Faults(
        buffer={"to_dlpack": lambda self, stream=None: np.zeros(3, np.float32).__dlpack__()}
    ),
    "declared.zero_copy_get": Faults(
        backend={"view": lambda self, handle: np.array(handle)},
    ),
    "declared.stablehlo_version": Faults(
        capabilities={
            "stablehlo_minimum_version": (1, 99, 0),
            "stablehlo_current_version": (1, 0, 0),
        }
    ),
}
