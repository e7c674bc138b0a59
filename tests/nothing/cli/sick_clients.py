"""Backends in Python that start without an error and then misbehave."""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from plugrt.interface import (
    Buffer,
    Client,
    CompileOptions,
    Executable,
    ExecuteOptions,
    LoadedExecutable,
    OptionValue,
    Program,
    Shards,
)
from support.fake_client import FakeBuffer, FakeClient, FakeDevice, FakePlugin


class Speechless(Exception):
    """An exception whose ``str`` and ``repr`` raise."""

    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


class Doubles(LoadedExecutable):
    """Runs ``x + x`` for any program."""

    def __init__(self, client: Client) -> None:
        self._client = client

    client = property(lambda self: self._client)
    addressable_devices = property(lambda self: self._client.addressable_devices())

    @property
    def executable(self) -> Executable:
        self._unimplemented("executable")

    def execute(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None = None
    ) -> Sequence[Shards]:
        return [[FakeBuffer(self.double(b.to_host()), b.device)] for (b,) in arguments]

    def double(self, array: np.ndarray) -> np.ndarray:
        return array + array

    def delete(self) -> None:
        pass

    def is_deleted(self) -> bool:
        return False


class Healthy(FakeClient):
    def compile(self, program: Program, options: CompileOptions) -> LoadedExecutable:
        return Doubles(self)


def _raise(error: BaseException) -> Any:
    raise error


def _of(loaded: Any) -> dict[str, Any]:
    """Returns a ``compile`` method that returns ``loaded(client)``."""
    return {"compile": lambda self, program, options: loaded(self)}


def _first(act: Callable[[], Any]) -> dict[str, Any]:
    """Returns a ``devices`` method that calls ``act`` before it lists the devices."""
    return {"devices": lambda self: (act(), FakeClient.devices(self))[1]}


def _put(change: Callable[[np.ndarray], np.ndarray]) -> dict[str, Any]:
    def put(self: Any, array: np.ndarray, *more: Any, **others: Any) -> Buffer:
        return FakeClient.buffer_from_host(self, change(array), *more, **others)

    return {"buffer_from_host": put}


class Triples(Doubles):
    double = lambda self, array: 3 * array  # noqa: E731


class NoResults(Doubles):
    execute = lambda self, *arguments: []  # noqa: E731


FAULTS: Mapping[str, dict[str, Any]] = {
    "healthy": {},
    "equalids": {"devices": lambda self: [FakeDevice(self, 7), FakeDevice(self, 7)]},
    "foreign": {"devices": lambda self: [FakeDevice(self, 0, 5)]},
    "readszeros": _put(np.zeros_like),
    "readsdoubles": _put(lambda array: array.astype(np.float64)),
    "wrongnumbers": _of(Triples),
    "noresults": _of(NoResults),
    "raiseswithoutwords": _of(lambda client: _raise(Speechless())),
    "raisesexit": _of(lambda client: _raise(SystemExit(3))),
    "returnsnone": _of(lambda client: None),
    "aborts": _of(lambda client: os.abort()),
    "abortsatexit": _first(lambda: atexit.register(os.abort)),
    "hangsatexit": _first(lambda: threading.Thread(target=time.sleep, args=(600,)).start()),
    "chatters": _first(lambda: os.write(1, b"chatter")),
}
"""For each fault the methods that replace the healthy ones."""


class SickPlugin(FakePlugin):
    """Offers the client of that name."""

    def create_client(
        self, options: Mapping[str, OptionValue], distributed: Any | None = None
    ) -> Client:
        return type(self.name, (Healthy,), FAULTS[self.name])(self.name)
