"""Mutants of programs: each computes one result wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mutants.results import accept, each, spoil, wrong_result
from plugrt.errors import InvalidArgument
from plugrt.interface import CompileOptions, Program
from plugrt_sdk.conformance.expect import Array
from plugrt_sdk.conformance.mutants.faults import Faults, MutantClient, execute
from plugrt_sdk.executable import BackendExecutable
from plugrt_sdk.loaded_executable import BackendLoadedExecutable
from plugrt_sdk.reading import read_module
from plugrt_sdk.testing.programs import IDENTITY


def _has(words: str) -> Callable[[str, Program], bool]:
    return lambda text, program: words in text


def _add_one(array: Array) -> Any:
    return array + array.dtype.type(1)


def _swap_arguments(self: BackendLoadedExecutable, arguments: Any, options: Any = None) -> Any:
    return execute(self, list(arguments)[::-1], options)


def _refuse_text(self: MutantClient, program: Program, options: CompileOptions) -> Any:
    if not program.code.startswith(b"ML\xefR"):
        raise InvalidArgument("this compiler reads portable artifacts")
    return MutantClient.compile(self, program, options)


def _argument_itself(self: BackendLoadedExecutable, arguments: Any, options: Any = None) -> Any:
    """Returns the argument itself if the program returns its argument."""
    results = execute(self, arguments, options)
    return list(arguments) if _text_of(self) == _IDENTITY_TEXT else results


def _text_of(loaded: BackendLoadedExecutable) -> str:
    return str(read_module(loaded.executable.compiled.program))


_IDENTITY_TEXT = str(read_module(Program(IDENTITY.encode())))


def _host_tokens_only(loaded: BackendLoadedExecutable, arguments: list[Any]) -> list[Any]:
    """Refuses the tokens of other launches."""
    if any(buffer.type.is_token for shards in arguments for buffer in shards):
        raise InvalidArgument("a token is put by the host")
    return arguments


def _refuse_no_arguments(loaded: BackendLoadedExecutable, arguments: list[Any]) -> list[Any]:
    """Determines the devices of a launch by its first argument, which may not exist."""
    if not arguments and not loaded.executable.output_types:
        raise InvalidArgument("a launch has arguments")
    return arguments


def _reversed_inputs(self: BackendExecutable) -> Any:
    return self.compiled.input_types[::-1]


_REVERSED = "%arg199"


_PROGRAMS: Mapping[str, Faults] = {
    "add": wrong_result(_has("stablehlo.add"), each(spoil(0))),
    "argument_order": Faults(loaded={"execute": _swap_arguments}),
    "executable": Faults(executable={"num_replicas": 2}),
    "input_types": Faults(executable={"input_types": property(_reversed_inputs)}),
    "result_type": Faults(result={"dtype": np.dtype(np.float16)}),
    "text": Faults(client={"compile": _refuse_text}),
    "identity": Faults(loaded={"execute": _argument_itself}),
    "constant": wrong_result(_has("stablehlo.constant"), each(_add_one)),
    "no_results": Faults(loaded={"execute": lambda self, arguments, options=None:
                                 execute(self, arguments, options) or arguments}),
    "nothing": accept(_refuse_no_arguments),
    "empty_tuples": wrong_result(_has("tuple<>"), each(_add_one)),
    "several_results": wrong_result(
        _has("tensor<0x4xf32>"), lambda found: [found[0], found[2], found[1], found[3]]
    ),
    "many_arguments": wrong_result(_has(_REVERSED), lambda found: found[::-1]),
    "loop": wrong_result(_has("stablehlo.while"), each(_add_one)),
    "branches": wrong_result(_has("stablehlo.case"), each(lambda a: np.minimum(a, 11))),
    "call": wrong_result(_has("call @"), each(_add_one)),
    "tokens": accept(_host_tokens_only),
    "network": wrong_result(_has("stablehlo.dot_general"), each(spoil(4))),
}  # fmt: skip


MUTANTS: Mapping[str, Faults] = {
    **{f"programs.{name}": faults for name, faults in _PROGRAMS.items()},
}
