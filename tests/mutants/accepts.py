"""Mutants that accept too little or too much."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any

from mutants.declared import liar
from plugrt.interface import HOST_CALLBACK, CompileOptions, Handler, Program
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk.conformance.mutants.faults import Faults, MutantClient


def _one_id(self: MutantClient, name: str, type_id: int, type_info: int | None = None) -> None:
    """Gives all types one id, and ignores requested ones."""
    ctypes.c_int64.from_address(type_id).value = 5


def _misread_hlo(self: MutantClient, program: Program, options: CompileOptions) -> Any:
    """Compiles another sum for a program in the format ``hlo``."""
    from plugrt_sdk.testing.programs import ADD

    if program.format == "hlo":
        program = Program(ADD.replace("stablehlo.add", "stablehlo.multiply").encode())
    return MutantClient.compile(self, program, options)


def _handlers(applies: Callable[[str], bool], change: Callable[[Handler], Handler]) -> Faults:
    """Returns a mutant that calls other functions than those registered for some targets."""

    def register_handler(self: NumpyBackend, target: str, handler: Handler) -> None:
        kept = change(handler) if applies(target) else handler
        NumpyBackend.register_handler(self, target, kept)

    return Faults(backend={"register_handler": register_handler})


def _forget(handler: Handler) -> Handler:
    return lambda arguments, results, attributes: None


def _reverse(handler: Handler) -> Handler:
    return lambda arguments, results, attributes: handler(arguments[::-1], results, attributes)


def _repeat(handler: Handler) -> Handler:
    def call(arguments: Any, results: Any, attributes: Any) -> None:
        handler(arguments, results, attributes)
        handler(arguments, results, attributes)

    return call


def _keep_handler(self: NumpyBackend, target: str) -> None:
    """Keeps the handler."""


MUTANTS: Mapping[str, Faults] = {
    "accepts.dtypes": Faults(capabilities={"dtypes": frozenset({"float32", "float7"})}),
    "accepts.program_formats": Faults(
        capabilities={"program_formats": ("mlir", "hlo")}, client={"compile": _misread_hlo}
    ),
    "accepts.zero_copy_put": Faults(backend={"alias": lambda self, array, device: array.copy()}),
    "accepts.strided_put": liar("strided_put"),
    "accepts.custom_calls": _handlers(lambda target: target != HOST_CALLBACK, _forget),
    "accepts.custom_calls.unregister": Faults(backend={"unregister_handler": _keep_handler}),
    "accepts.custom_calls.types": Faults(client={"register_handler_type": _one_id}),
    "accepts.host_callbacks": _handlers(lambda target: target == HOST_CALLBACK, _reverse),
    "accepts.host_callbacks.order": _handlers(lambda target: target == HOST_CALLBACK, _repeat),
}
