"""Mutants of the forms of programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mutants.results import each, spoil, wrong_result
from plugrt.errors import InvalidArgument
from plugrt.interface import CompileOptions, Program
from plugrt_sdk.buffer import BackendBuffer
from plugrt_sdk.conformance.mutants.faults import Faults, MutantClient, execute
from plugrt_sdk.loaded_executable import BackendLoadedExecutable


def _refuse_code(applies: Callable[[bytes], bool]) -> Faults:
    """Returns a mutant that refuses programs whose bytes a function selects."""

    def compile(self: MutantClient, program: Program, options: CompileOptions) -> Any:
        if applies(program.code):
            raise InvalidArgument("this compiler reads other programs")
        return MutantClient.compile(self, program, options)

    return Faults(client={"compile": compile})


def _has_version(minor: int) -> Faults:
    mark = f"StableHLO_v1.{minor}.".encode()
    return _refuse_code(lambda code: mark in code)


def is_portable(code: bytes) -> bool:
    return b"StableHLO_v" in code[:64]


def _one_result(self: BackendLoadedExecutable, arguments: Any, options: Any = None) -> Any:
    """Returns one buffer for two results of one value."""
    results = execute(self, arguments, options)
    return [results[0]] * len(results) if len(results) == 2 else results


def _used_up(self: BackendLoadedExecutable, arguments: Any, options: Any = None) -> Any:
    """Overwrites an argument that is passed twice with the result."""
    results: Any = execute(self, arguments, options)
    if len(arguments) == 2 and arguments[0][0] is arguments[1][0]:
        buffer: BackendBuffer = arguments[0][0]
        buffer._handle = results[0][0]._handle
    return results


_MANY = "%arg999"


MUTANTS: Mapping[str, Faults] = {
    **{f"forms.artifact.version_1_{minor}": _has_version(minor) for minor in (0, 5, 9)},
    "forms.artifact.newest": _refuse_code(is_portable),
    "forms.bytecode": _refuse_code(
        lambda code: code.startswith(b"ML\xefR") and not is_portable(code)
    ),
    "forms.attributes": _refuse_code(lambda code: b"jax.result_info" in code),
    "forms.thousand_arguments": wrong_result(lambda text, program: _MANY in text, each(spoil(0))),
    "forms.large_constant": wrong_result(
        lambda text, program: "262144xi32" in text, each(spoil(0))
    ),
    "forms.same_result_twice": Faults(loaded={"execute": _one_result}),
    "forms.same_argument_twice": Faults(loaded={"execute": _used_up}),
}
