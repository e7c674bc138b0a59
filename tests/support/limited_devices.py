"""Plugins of sound devices that can do little, as ``module:name`` for ``plugrt conform``."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from plugrt.errors import ResourceExhausted, Unimplemented
from plugrt.interface import CompileOptions, Program
from plugrt.plugins import LibraryPlugin, Plugin
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk.conformance.mutants.faults import Faults
from plugrt_sdk.export import export_capsule
from plugrt_sdk.reading import read_module

BYTES = 1 << 20
_OTHER_TYPE = re.compile(r"tensor<(?:[\d?]+x)*(?!f32\b|[\d?])")


def one_megabyte(lost: int = 0) -> Plugin:
    """A device that states its 1 MiB of memory; ``lost`` bytes are never free."""

    def stats(self: NumpyBackend, device: int) -> dict[str, int]:
        return {**NumpyBackend.memory_stats(self, device), "bytes_limit": BYTES}

    def put(self: NumpyBackend, array: Any, device: int) -> Any:
        used = NumpyBackend.memory_stats(self, device)["bytes_in_use"] + lost
        if used + array.nbytes > BYTES:
            raise ResourceExhausted(f"{array.nbytes} bytes beside {used} of {BYTES}")
        return NumpyBackend.put(self, array, device)

    return Faults(backend={"memory_stats": stats, "put": put}).plugin_of()


def _launching(before: Callable[[], None]) -> Faults:
    def compiled(self: NumpyBackend, program: Program, options: CompileOptions) -> Any:
        launch = NumpyBackend.compile(self, program, options)

        def start(*arguments: Any) -> Any:
            before()
            return launch(*arguments)

        return start

    return Faults(backend={"compile": compiled})


def slow(seconds: float = 2.0) -> Plugin:
    """A device with launches of so many seconds."""
    return _launching(lambda: time.sleep(float(seconds))).plugin_of()


def _refuse() -> NoReturn:
    raise Unimplemented("this compiler has no device to launch on")


def compiles_only() -> Plugin:
    """A device that compiles, and refuses to launch."""
    return _launching(_refuse).plugin_of()


def library_compiles_only() -> Plugin:
    """The same as a PJRT library."""
    plugin = compiles_only()
    capsule = export_capsule(lambda **options: plugin.create_client(options))
    return LibraryPlugin("library", c_api=capsule)


def float32_only() -> Plugin:
    """A device of one dtype."""

    def put(self: NumpyBackend, array: Any, device: int) -> Any:
        if array.dtype != np.float32:
            raise Unimplemented(f"arrays of {array.dtype}: the device has float32 alone")
        return NumpyBackend.put(self, array, device)

    def compiled(self: NumpyBackend, program: Program, options: CompileOptions) -> Any:
        if found := _OTHER_TYPE.search(str(read_module(program))):
            raise Unimplemented(f"{found[0]}…: the device has float32 alone")
        return NumpyBackend.compile(self, program, options)

    return Faults(
        backend={"put": put, "compile": compiled}, capabilities={"dtypes": frozenset({"float32"})}
    ).plugin_of()


def static_shapes() -> Plugin:
    """A compiler of programs whose dimensions are all known."""

    def compiled(self: NumpyBackend, program: Program, options: CompileOptions) -> Any:
        if "?" in str(read_module(program)):
            raise Unimplemented("dimensions that are not known when the program is compiled")
        return NumpyBackend.compile(self, program, options)

    return Faults(backend={"compile": compiled}).plugin_of()


def no_devices() -> Plugin:
    """A client that refuses to list its devices."""

    def devices(self: Any) -> NoReturn:
        raise Unimplemented("devices()")

    return Faults(client={"devices": devices, "addressable_devices": devices}).plugin_of()
