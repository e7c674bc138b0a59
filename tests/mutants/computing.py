"""Mutants of programs: each computes one thing wrong, or takes what it must refuse."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np

from plugrt.errors import InvalidArgument, PlugrtError
from plugrt.interface import CompileOptions, Program, TensorType
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk.conformance.expect import Array
from plugrt_sdk.conformance.mutants.faults import Faults, MutantClient, execute
from plugrt_sdk.executable import BackendExecutable
from plugrt_sdk.loaded_executable import BackendLoadedExecutable
from plugrt_sdk.reading import read_module
from plugrt_sdk.testing.programs import ADD, IDENTITY


def wrong_result(applies: Callable[[str, Program], Any], change: Callable[[Any], Any]) -> Faults:
    """Returns a mutant that changes the results of programs that a function picks out.

    ``applies`` is called with the program's text; ``change`` with ``results[result][device]``.
    """

    def compile(self: NumpyBackend, program: Program, options: CompileOptions) -> Any:
        launch = NumpyBackend.compile(self, program, options)
        if not applies(str(read_module(program)), program):
            return launch
        return lambda *given: change(launch(*given))

    return Faults(backend={"compile": compile})


def each(change: Callable[[Array], Array]) -> Callable[[Any], Any]:
    """Returns a function that changes each array of a launch's results."""
    return lambda results: [[change(array) for array in shards] for shards in results]


def spoil(ulps: int) -> Callable[[Array], Array]:
    """Returns a function that changes the last element, of floats by a little more than allowed."""

    def spoil(array: Array) -> Array:
        found = array.copy()
        last = found.reshape(-1)[-1]
        if found.dtype == bool:
            found.reshape(-1)[-1] = not last
        elif found.dtype.kind in "iu":
            found.reshape(-1)[-1] = last ^ 1
        else:
            found.reshape(-1)[-1] = _further(last, found.dtype, 2 * ulps + 2)
        return found

    return spoil


def _further(value: Any, dtype: Any, ulps: int) -> Any:
    info: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    scale = max(abs(complex(value)), float(info.tiny))
    return value + dtype.type(ulps * float(info.eps) * scale)


# --- programs as such ----------------------------------------------------------------------------


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
    """Returns the argument itself where the program returns its argument."""
    results = execute(self, arguments, options)
    return list(arguments) if _text_of(self) == _IDENTITY_TEXT else results


def _text_of(loaded: BackendLoadedExecutable) -> str:
    return str(read_module(loaded.executable.compiled.program))


_IDENTITY_TEXT = str(read_module(Program(IDENTITY.encode())))


def _forgiving_compile(self: MutantClient, program: Program, options: CompileOptions) -> Any:
    """Compiles the sum of two arrays in the place of whatever it cannot read."""
    try:
        return MutantClient.compile(self, program, options)
    except PlugrtError:
        return MutantClient.compile(self, Program(ADD.encode()), CompileOptions())


def _compile_unreadable(mark: bytes) -> Faults:
    """Returns a mutant that compiles what it cannot read, if that begins with ``mark``."""

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


def accept(adapt: Callable[[BackendLoadedExecutable, list[Any]], list[Any]]) -> Faults:
    """Returns a mutant that makes arguments fit before they are checked."""

    def run(self: BackendLoadedExecutable, arguments: Any, options: Any = None) -> Any:
        return execute(self, adapt(self, list(arguments)), options)

    return Faults(loaded={"execute": run})


def _pad(loaded: BackendLoadedExecutable, arguments: list[Any]) -> list[Any]:
    return arguments + arguments[-1:] * (len(loaded.executable.input_types) - len(arguments))


def _cut(loaded: BackendLoadedExecutable, arguments: list[Any]) -> list[Any]:
    return arguments[: len(loaded.executable.input_types)]


def _first_only(loaded: BackendLoadedExecutable, arguments: list[Any]) -> list[Any]:
    return [shards[:1] for shards in arguments]


def _convert(change: Callable[[Array, TensorType], Array | None]) -> Faults:
    """Returns a mutant that converts arguments of a wrong type in silence."""

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


def _host_tokens_only(loaded: BackendLoadedExecutable, arguments: list[Any]) -> list[Any]:
    """Refuses the tokens of other launches."""
    if any(buffer.type.is_token for shards in arguments for buffer in shards):
        raise InvalidArgument("a token is put by the host")
    return arguments


def _refuse_no_arguments(loaded: BackendLoadedExecutable, arguments: list[Any]) -> list[Any]:
    """Finds the devices of a launch by its first argument, which there need not be."""
    if not arguments and not loaded.executable.output_types:
        raise InvalidArgument("a launch has arguments")
    return arguments


def _resize(array: Array, wanted: TensorType) -> Array | None:
    same = array.ndim == len(wanted.shape) and array.dtype == wanted.dtype
    return np.resize(array, wanted.shape) if same else None


def _reshape(array: Array, wanted: TensorType) -> Array | None:
    same = array.size == np.prod(wanted.shape) and array.dtype == wanted.dtype
    return array.reshape(wanted.shape) if same else None


def _cast(array: Array, wanted: TensorType) -> Array | None:
    return array.astype(wanted.dtype) if array.shape == wanted.shape else None


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
    "refused.nonsense": _compile_unreadable(b"this is no program"),
    "refused.version": _compile_unreadable(b"ML\xefR\rStableHLO_v99"),
    "refused.format": Faults(client={"compile": _any_format}),
    "refused.operation": Faults(backend={"compile": _skip_custom_calls}),
    "refused.devices": Faults(client={"compile": _fewer_replicas}),
    "refused.arguments.fewer": accept(_pad),
    "refused.arguments.more": accept(_cut),
    "refused.arguments.size": _convert(_resize),
    "refused.arguments.rank": _convert(_reshape),
    "refused.arguments.dtype": _convert(_cast),
    "refused.arguments.buffers": accept(_first_only),
}  # fmt: skip

COMPUTING: Mapping[str, Faults] = {
    **{f"programs.{name}": faults for name, faults in _PROGRAMS.items()},
}
