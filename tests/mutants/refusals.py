"""Mutants that run programs and arguments that they must refuse."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mutants.forms import is_portable
from mutants.results import accept
from plugrt.errors import PlugrtError
from plugrt.interface import CompileOptions, Program, TensorType
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk.conformance.checks import refusals
from plugrt_sdk.conformance.expect import Array
from plugrt_sdk.conformance.mutants.faults import Faults, MutantClient, execute
from plugrt_sdk.loaded_executable import BackendLoadedExecutable
from plugrt_sdk.reading import read_module
from plugrt_sdk.testing.programs import ADD


def _forgiving_compile(self: MutantClient, program: Program, options: CompileOptions) -> Any:
    """Compiles the sum of two arrays instead of a program that it cannot read."""
    try:
        return MutantClient.compile(self, program, options)
    except PlugrtError:
        return MutantClient.compile(self, Program(ADD.encode()), CompileOptions())


def _compile_unreadable(mark: bytes) -> Faults:
    """Returns a mutant that compiles unreadable programs that begin with ``mark``."""

    def compile(self: MutantClient, program: Program, options: CompileOptions) -> Any:
        if program.code.startswith(mark):
            return _forgiving_compile(self, program, options)
        return MutantClient.compile(self, program, options)

    return Faults(client={"compile": compile})


def _any_format(self: MutantClient, program: Program, options: CompileOptions) -> Any:
    return MutantClient.compile(self, Program(program.code), options)


def _skip_custom_calls(self: NumpyBackend, program: Program, options: CompileOptions) -> Any:
    """Returns the arguments as the results of a program with a custom call."""
    if "stablehlo.custom_call" in str(read_module(program)):
        return lambda arguments, *rest: arguments
    return NumpyBackend.compile(self, program, options)


def _fewer_replicas(self: MutantClient, program: Program, options: CompileOptions) -> Any:
    """Compiles for as many replicas as there are devices."""
    if options.num_replicas > len(self.devices()):
        options = CompileOptions()
    return MutantClient.compile(self, program, options)


def _pad(loaded: BackendLoadedExecutable, arguments: list[Any]) -> list[Any]:
    return arguments + arguments[-1:] * (len(loaded.executable.input_types) - len(arguments))


def _cut(loaded: BackendLoadedExecutable, arguments: list[Any]) -> list[Any]:
    return arguments[: len(loaded.executable.input_types)]


def _first_only(loaded: BackendLoadedExecutable, arguments: list[Any]) -> list[Any]:
    return [shards[:1] for shards in arguments]


def _convert(change: Callable[[Array, TensorType], Array | None]) -> Faults:
    """Returns a mutant that converts arguments of a wrong type without an error."""

    def adapt(loaded: BackendLoadedExecutable, arguments: list[Any]) -> list[Any]:
        found = []
        for shards, wanted in zip(arguments, loaded.executable.input_types, strict=False):
            buffer = shards[0]
            fits = buffer.type == wanted or wanted.is_token
            changed = None if fits else change(buffer.to_host(), wanted)
            if changed is not None:
                shards = [loaded.client.buffer_from_host(changed, buffer.device)]
            found.append(shards)
        return found if len(found) == len(arguments) else arguments

    return accept(adapt)


def _resize(array: Array, wanted: TensorType) -> Array | None:
    same = array.ndim == len(wanted.shape) and array.dtype == wanted.dtype
    return np.resize(array, wanted.shape) if same else None


def _reshape(array: Array, wanted: TensorType) -> Array | None:
    same = array.size == np.prod(wanted.shape) and array.dtype == wanted.dtype
    return array.reshape(wanted.shape) if same else None


def _cast(array: Array, wanted: TensorType) -> Array | None:
    return array.astype(wanted.dtype) if array.shape == wanted.shape else None


_REFUSED: Mapping[str, Faults] = {
    "nonsense": _compile_unreadable(b"this is no program"),
    "version": _compile_unreadable(b"ML\xefR\rStableHLO_v99"),
    "format": Faults(client={"compile": _any_format}),
    "operation": Faults(backend={"compile": _skip_custom_calls}),
    "devices": Faults(client={"compile": _fewer_replicas}),
    "arguments.fewer": accept(_pad),
    "arguments.more": accept(_cut),
    "arguments.size": _convert(_resize),
    "arguments.rank": _convert(_reshape),
    "arguments.dtype": _convert(_cast),
    "arguments.buffers": accept(_first_only),
}  # fmt: skip


def _take_for_sum(applies: Callable[[bytes], bool]) -> Faults:
    """Returns a mutant that compiles a sum for faulty programs that a function selects."""

    def compile(self: MutantClient, program: Program, options: CompileOptions) -> Any:
        try:
            return MutantClient.compile(self, program, options)
        except PlugrtError:
            if not applies(program.code):
                raise
            return MutantClient.compile(self, Program(ADD.encode()), options)

    return Faults(client={"compile": compile})


def _elsewhere(self: BackendLoadedExecutable, arguments: Any, options: Any = None) -> Any:
    """Copies arguments that are on another device than the program."""
    [device, *_] = self.addressable_devices
    return execute(self, [[shards[0].copy_to_device(device)] for shards in arguments], options)


MUTANTS: Mapping[str, Faults] = {
    **{f"programs.refused.{name}": faults for name, faults in _REFUSED.items()},
    **{
        f"programs.refused.module.{name}": _take_for_sum(text.encode().__eq__)
        for name, (_, text) in refusals.BAD.items()
    },
    "programs.refused.truncated": _take_for_sum(is_portable),
    "programs.refused.arguments.device": Faults(loaded={"execute": _elsewhere}, devices=2),
}
