"""Backends in Python that start well, and then do not do what they should."""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from plugrt.interface import (
    Buffer,
    Client,
    CompileOptions,
    Device,
    Executable,
    ExecuteOptions,
    LoadedExecutable,
    OptionValue,
    Program,
    Shards,
)
from support.fake_client import FakeBuffer, FakeClient, FakeDevice, FakePlugin


class Speechless(Exception):
    """Says nothing, and raises when asked to."""

    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


class Doubles(LoadedExecutable):
    """Runs ``x + x``, whatever the program was."""

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


class EqualIds(Healthy):
    def devices(self) -> Sequence[Device]:
        return [FakeDevice(self, 7), FakeDevice(self, 7)]


class Foreign(Healthy):
    def devices(self) -> Sequence[Device]:
        return [FakeDevice(self, 0, 5)]


class ReadsZeros(Healthy):
    def buffer_from_host(self, array: np.ndarray, *more: Any, **others: Any) -> Buffer:
        return super().buffer_from_host(np.zeros_like(array), *more, **others)


class ReadsDoubles(Healthy):
    def buffer_from_host(self, array: np.ndarray, *more: Any, **others: Any) -> Buffer:
        return super().buffer_from_host(array.astype(np.float64), *more, **others)


class Triples(Doubles):
    def double(self, array: np.ndarray) -> np.ndarray:
        return 3 * array


class WrongNumbers(Healthy):
    def compile(self, program: Program, options: CompileOptions) -> LoadedExecutable:
        return Triples(self)


class NoResults(Healthy):
    def compile(self, program: Program, options: CompileOptions) -> LoadedExecutable:
        loaded = Doubles(self)
        loaded.execute = lambda *arguments: []  # type: ignore[method-assign]
        return loaded


class RaisesWithoutWords(Healthy):
    def compile(self, program: Program, options: CompileOptions) -> LoadedExecutable:
        raise Speechless


class RaisesExit(Healthy):
    def compile(self, program: Program, options: CompileOptions) -> LoadedExecutable:
        raise SystemExit(3)


class ReturnsNone(Healthy):
    def compile(self, program: Program, options: CompileOptions) -> LoadedExecutable:
        return None  # type: ignore[return-value]


class Aborts(Healthy):
    def compile(self, program: Program, options: CompileOptions) -> LoadedExecutable:
        os.abort()


class AbortsAtExit(Healthy):
    def devices(self) -> Sequence[Device]:
        atexit.register(os.abort)
        return super().devices()


class HangsAtExit(Healthy):
    def devices(self) -> Sequence[Device]:
        threading.Thread(target=time.sleep, args=(600,)).start()
        return super().devices()


class Chatters(Healthy):
    def devices(self) -> Sequence[Device]:
        os.write(1, b"chatter")
        return super().devices()


CLIENTS: Mapping[str, type[FakeClient]] = {
    cls.__name__.lower(): cls
    for cls in (
        Healthy, EqualIds, Foreign, ReadsZeros, ReadsDoubles, WrongNumbers, NoResults,
        RaisesWithoutWords, RaisesExit, ReturnsNone, Aborts, AbortsAtExit, HangsAtExit, Chatters,
    )
}  # fmt: skip


class SickPlugin(FakePlugin):
    """Offers the client of that name."""

    def create_client(
        self, options: Mapping[str, OptionValue], distributed: Any | None = None
    ) -> Client:
        return CLIENTS[self.name](self.name)
