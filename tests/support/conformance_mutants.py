"""Plugins with one defect, as ``module:name`` for ``plugrt conform``."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from mutants import mutant
from mutants.ahead_of_time import COMPILES
from plugrt.errors import NotFound, ProgramError, Unknown
from plugrt.interface import CompileOptions, OptionValue, Program
from plugrt.plugins import LibraryPlugin, Plugin
from plugrt_numpy import plugin as numpy_plugin
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk import BackendPlugin
from plugrt_sdk.conformance.mutants.faults import Faults, MutantClient
from plugrt_sdk.export import export_capsule


def no_zero_d() -> Plugin:
    """The mutant that changes arrays without dimensions."""
    return mutant("buffers.put_get.scalar")


def dead() -> Plugin:
    """The mutant that ends the process when a client is started."""
    return mutant("killer.segfault_at_start")


def says_unknown() -> Plugin:
    """A sound plugin that refuses invalid programs with UNKNOWN, as XLA's compiler does."""

    def compile(self: MutantClient, program: Program, options: CompileOptions) -> Any:
        try:
            return MutantClient.compile(self, program, options)
        except ProgramError as error:
            raise Unknown(str(error)) from error

    return Faults(client={"compile": compile}).plugin_of()


def crashes_soon() -> Plugin:
    """A plugin whose thread reads NULL a little after an array of shape (1, 1) was put."""

    def put(self: NumpyBackend, array: Any, device: int) -> Any:
        if array.shape == (1, 1):
            threading.Timer(0.05, ctypes.string_at, [8]).start()
        return NumpyBackend.put(self, array, device)

    return Faults(backend={"put": put}).plugin_of()


def complains_and_hangs() -> Plugin:
    """A plugin that prints the reason and hangs when an array of shape (1, 1) is put."""

    def put(self: NumpyBackend, array: Any, device: int) -> Any:
        if array.shape == (1, 1):
            os.write(2, b"No chips detected\n")
            time.sleep(600)
        return NumpyBackend.put(self, array, device)

    return Faults(backend={"put": put}).plugin_of()


def fails_once() -> Plugin:
    """A plugin that loses the first array of one element, unless the file FAILED exists."""

    def put(self: NumpyBackend, array: Any, device: int) -> Any:
        file = Path(os.environ["FAILED"])
        if array.size == 1 and not file.exists():
            file.touch()
            array = np.zeros_like(array)
        return NumpyBackend.put(self, array, device)

    return Faults(backend={"put": put}).plugin_of()


def no_library() -> Plugin:
    """The mutant whose library does not exist."""
    return mutant("host.library")


def absent() -> Plugin:
    """A PJRT library whose device is not on this machine, and which compiles for it."""
    return _without_device("ahead_of_time.devices", sound=True)


def absent_and_wrong() -> Plugin:
    """The same, whose topologies have two devices of one id."""
    return _without_device("ahead_of_time.devices", sound=False)


def _without_device(defect: str, *, sound: bool) -> Plugin:
    compiles = _compiler() if sound else mutant(defect)

    def start(**options: OptionValue) -> NoReturn:
        raise NotFound("no frobnitz device found")

    return LibraryPlugin(
        "absent", c_api=export_capsule(start, topology_factory=compiles.create_topology)
    )


def _compiler() -> Plugin:
    return BackendPlugin("compiler", type("Compiler", (NumpyBackend,), dict(COMPILES)))


def in_process() -> Plugin:
    """The NumPy backend."""
    return numpy_plugin


def through_capsule() -> Plugin:
    """The NumPy backend as an exported library under a host."""
    return LibraryPlugin(
        "exported",
        c_api=export_capsule(
            lambda **given: numpy_plugin.create_client(given),
            topology_factory=numpy_plugin.create_topology,
        ),
    )
