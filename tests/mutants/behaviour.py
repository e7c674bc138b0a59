"""Mutants of events, threads and errors."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from plugrt.errors import InvalidArgument, PlugrtError
from plugrt.interface import CompileOptions, Program, ReadyEvent
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk.conformance.mutants.faults import Faults, MutantClient, execute
from plugrt_sdk.loaded_executable import BackendLoadedExecutable


def _one_slot() -> Faults:
    """Returns a mutant whose launches on threads other than the main one share their arguments."""
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
    """An event that calls its callback twice."""

    def on_ready(self, callback: Any) -> None:
        ReadyEvent.on_ready(self, callback)
        ReadyEvent.on_ready(self, callback)


class _NotYet(ReadyEvent):
    """An event that becomes ready only when a thread waits for it."""

    def __init__(self, waited: set[int], key: int) -> None:
        super().__init__()
        self._waited, self._key = waited, key

    def is_ready(self) -> bool:
        return self._key in self._waited

    def wait(self) -> None:
        self._waited.add(self._key)


_waited: set[int] = set()


def _fail_after_refusals() -> Faults:
    """Returns a mutant that computes wrong numbers after it has refused three programs."""
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
    """Returns a mutant that uses the previous launch's argument in each twentieth launch."""
    seen: list[Any] = []

    def launch(self: BackendLoadedExecutable, arguments: Any, options: Any = None) -> Any:
        given = list(arguments)
        if len(seen) % 20 == 19:
            given[0] = seen[-1]
        seen.append(given[0])
        return execute(self, given, options)

    return Faults(loaded={"execute": launch})


def _wordless(self: MutantClient, program: Program, options: CompileOptions) -> Any:
    try:
        return MutantClient.compile(self, program, options)
    except PlugrtError:
        raise InvalidArgument("failed") from None


MUTANTS: Mapping[str, Faults] = {
    "behaviour.threads": _one_slot(),
    "behaviour.events": Faults(result={"ready_event": lambda self: _CallsTwice()}),
    "behaviour.after_errors": _fail_after_refusals(),
    "behaviour.order": _stale_chain(),
    "behaviour.error_text": Faults(client={"compile": _wordless}),
    "behaviour.synchronous": Faults(
        result={"ready_event": lambda self: _NotYet(_waited, id(self))}
    ),
}
