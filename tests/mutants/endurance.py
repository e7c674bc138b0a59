"""Mutants of leaks, threads, forks, and the end of the process."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from mutants.changes import keep_deleted, lose_memory
from mutants.tables import TableFaults, replace_function
from plugrt.errors import Internal
from plugrt.interface import CompileOptions, Program, ReadyEvent
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk.buffer import BackendBuffer
from plugrt_sdk.conformance.expect import Array
from plugrt_sdk.conformance.mutants.faults import Faults, MutantClient

_kept: list[Any] = []


def _keep_copies(self: NumpyBackend, array: Array, device: int) -> Array:
    """Keeps a copy of each put array."""
    _kept.append(array.copy())
    return array.copy()


def _keep_results(self: NumpyBackend, program: Program, options: CompileOptions) -> Any:
    """Keeps a copy of each result."""
    launch = NumpyBackend.compile(self, program, options)

    def keep_copies(*given: Any) -> Any:
        results = launch(*given)
        _kept.append([array.copy() for shards in results for array in shards])
        return results

    return keep_copies


def _keep_pages(self: MutantClient, program: Program, options: CompileOptions) -> Any:
    """Keeps two megabytes for each program."""
    _kept.append(np.ones(2 << 20, np.uint8))
    return MutantClient.compile(self, program, options)


def _growing() -> Any:
    calls: list[None] = []

    def memory_stats(self: Any) -> Mapping[str, int]:
        calls.append(None)
        return {"bytes_in_use": len(calls) << 20}

    return memory_stats


def _compile_latest() -> Any:
    """Returns a ``compile`` that returns the first thread's program to other threads."""
    first: list[tuple[int, Any]] = []

    def compile(self: MutantClient, program: Program, options: CompileOptions) -> Any:
        loaded = MutantClient.compile(self, program, options)
        if threading.current_thread() is threading.main_thread():
            return loaded
        first.append((threading.get_ident(), loaded))
        return first[0][1]

    return compile


def _torn(self: BackendBuffer) -> Array:
    """Reads other values on threads other than the main one."""
    found = BackendBuffer.to_host(self)
    return found if threading.current_thread() is threading.main_thread() else np.zeros_like(found)


class _MainThreadOnly(ReadyEvent):
    """An event that forgets callbacks of other threads."""

    def on_ready(self, callback: Any) -> None:
        if threading.current_thread() is threading.main_thread():
            ReadyEvent.on_ready(self, callback)


class _Told:
    """An array's event that makes reads within its callback fail."""

    def __init__(self, buffer: BackendBuffer) -> None:
        self._buffer = buffer

    def is_ready(self) -> bool:
        return True

    def wait(self) -> None:
        return None

    def on_ready(self, callback: Any) -> None:
        callback(Internal("it cannot be read yet"))


def _exit_with_3() -> None:
    atexit.register(os._exit, 3)


MUTANTS: Mapping[str, Faults | TableFaults] = {
    "endurance.cycles": Faults(backend={"put": _keep_copies}),
    "endurance.arrays": replace_function("Buffer_Destroy", keep_deleted),
    "endurance.reads": replace_function("Buffer_ToHostBuffer", lose_memory),
    "endurance.calls.puts": replace_function("Client_BufferFromHostBuffer", lose_memory),
    "endurance.calls.copies": replace_function("Buffer_CopyToDevice", lose_memory),
    "endurance.calls.events": replace_function("Buffer_ReadyEvent", lose_memory),
    "endurance.calls.answers": replace_function("Buffer_Dimensions", lose_memory),
    "endurance.calls.launches": replace_function("LoadedExecutable_Execute", lose_memory),
    "endurance.results": Faults(backend={"compile": _keep_results}),
    "endurance.memory_stats": Faults(
        capabilities={"memory_stats": True}, device={"memory_stats": _growing()}
    ),
    "endurance.programs": Faults(client={"compile": _keep_pages}),
    "endurance.threads.compile": Faults(client={"compile": _compile_latest()}),
    "endurance.threads.read": Faults(buffer={"to_host": _torn}),
    "endurance.callback.thread": Faults(result={"ready_event": lambda self: _MainThreadOnly()}),
    "endurance.callback.reads": Faults(result={"ready_event": lambda self: _Told(self)}),
    "endurance.fork": Faults(
        on_start=lambda: os.register_at_fork(after_in_child=lambda: os._exit(3))
    ),
    "endurance.exit.at_work": Faults(on_start=_exit_with_3),
    "endurance.exit.closed": Faults(on_start=_exit_with_3),
}
