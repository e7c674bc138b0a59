"""Mutants of wrong launches, and of programs that are loaded or described."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mutants.changes import before, refusal, then
from mutants.tables import TableFaults, keep, replace_function
from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.proto_wire import compile_options
from plugrt.interface import CompileOptions

_DEFAULTS = keep(ffi.new("char[]", compile_options(CompileOptions())))
_DEFAULTS_SIZE = len(compile_options(CompileOptions()))


def _repeat_last_argument(args: Any) -> None:
    """Repeats the last argument for missing ones, and drops superfluous ones."""
    if args.num_args:
        given = ffi.unpack(args.argument_lists[0], args.num_args)
        two = keep(ffi.new("PJRT_Buffer*[]", [*given, given[-1]][:2]))
        args.argument_lists = keep(ffi.new("PJRT_Buffer**[]", [two]))
        args.num_args = 2


def _launch_on_first(args: Any) -> None:
    args.num_devices = 1


def _compile_by_default(args: Any) -> None:
    """Uses the default options instead of those that begin with an unknown field."""
    if args.compile_options_size and args.compile_options[0] == b"\xff":
        args.compile_options, args.compile_options_size = _DEFAULTS, _DEFAULTS_SIZE


def _say_defaults(args: Any) -> None:
    args.serialized_bytes, args.serialized_bytes_size = _DEFAULTS, _DEFAULTS_SIZE


_OTHER = keep(ffi.new("char[]", b"""func.func public @main(%a: tensor<3xf32>, %b: tensor<3xf32>)
    -> tensor<3xf32> {
  %0 = stablehlo.subtract %a, %b : tensor<3xf32>
  return %0 : tensor<3xf32>
}"""))  # fmt: skip


def _compile_another(args: Any) -> None:
    program = keep(ffi.new("PJRT_Program*", args.program[0]))
    program.code, program.code_size = _OTHER, len(_OTHER) - 1
    args.program = program


def _refuse_context(sound: Any) -> Any:
    def launch(args: Any) -> Any:
        return sound(args) if args.options.context == ffi.NULL else refusal()

    return launch


MUTANTS: Mapping[str, TableFaults] = {
    "table_executables.arguments": replace_function(
        "LoadedExecutable_Execute", before(_repeat_last_argument)
    ),
    "table_executables.devices": replace_function(
        "LoadedExecutable_Execute", before(_launch_on_first)
    ),
    "table_executables.options.nonsense": replace_function(
        "Client_Compile", before(_compile_by_default)
    ),
    "table_executables.options": replace_function(
        "Executable_GetCompileOptions", then(_say_defaults), devices=2
    ),
    "table_executables.loaded": replace_function("Compile", before(_compile_another)),
    "table_executables.context": replace_function("LoadedExecutable_Execute", _refuse_context),
}
