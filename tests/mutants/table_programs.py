"""Mutants of programs by calls of the function table."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any

from mutants.changes import (
    OK,
    Sound,
    address,
    before,
    delete_buffer,
    keep_deleted,
    moves,
    refusal,
    then,
)
from mutants.tables import (
    TableFaults,
    keep,
    replace_extension_function,
    replace_function,
    replace_functions,
)
from plugrt.capi.abi._abi import ffi


def _read_to_nul(args: Any) -> None:
    ctypes.string_at(address(args.program.code))


def _read_behind_words(args: Any) -> None:
    """Reads a character beyond a program that ends with a letter."""
    end = address(args.program.code) + int(args.program.code_size)
    if args.program.code_size and ctypes.string_at(end - 1, 1).isalpha():
        ctypes.string_at(end, 1)


def _borrow_program() -> TableFaults:
    """Returns a mutant that reads a program when it is launched, not when it is compiled."""
    lent: dict[Any, tuple[Any, int, bytes]] = {}

    def compile(args: Any) -> None:
        program = args.program
        text = bytes(ffi.buffer(program.code, program.code_size))
        lent[args.executable] = (program.code, int(program.code_size), text)

    def execute(sound: Sound) -> Sound:
        def launch(args: Any) -> Any:
            code, size, text = lent.get(args.executable, (ffi.NULL, 0, b""))
            changed = size and bytes(ffi.buffer(code, size)) != text
            return refusal() if changed else sound(args)

        return launch

    return replace_functions({"Client_Compile": then(compile), "LoadedExecutable_Execute": execute})


_MLIR = keep(ffi.new("char[]", b"mlir"))


def _take_format(matches: Callable[[bytes], bool]) -> TableFaults:
    """Returns a mutant that reads some formats as MLIR."""

    def compile(args: Any) -> None:
        program = args.program
        if matches(bytes(ffi.buffer(program.format, program.format_size))):
            program.format, program.format_size = _MLIR, 4

    return replace_function("Client_Compile", before(compile))


def _compile_nothing(args: Any) -> None:
    """Compiles a module for a program of no bytes."""
    if args.program.code_size == 0:
        args.program.code, args.program.code_size = _NOTHING, len(_NOTHING) - 1


_NOTHING = keep(ffi.new("char[]", b"func.func public @main() { return }"))


def _take_no_room(sound: Sound) -> Sound:
    """States one byte more in the first call than it writes in the second."""

    def optimized(args: Any) -> Any:
        program = args.program
        asked = program.code == ffi.NULL
        error = sound(args)
        if not asked:
            program.code[int(program.code_size)] = b"\0"
        return error

    return optimized


def shares(name: str, owner: str) -> TableFaults:
    """Returns a mutant that returns one result to all callers, which the first one frees."""
    fields = ("serialized_bytes", "serialized_bytes_size", owner, f"{owner}_deleter")
    shared: list[Any] = []
    state = {"freed": False}

    def give(sound: Sound) -> Sound:
        def call(args: Any) -> Any:
            if not shared:
                error = sound(args)
                inner, kind = getattr(args, fields[3]), ffi.typeof(getattr(args, fields[3]))

                def free(held: Any) -> None:
                    if not state["freed"]:
                        inner(held)
                    state["freed"] = True

                setattr(args, fields[3], keep(ffi.callback(kind, free)))
                shared.extend(getattr(args, field) for field in fields)
                return error
            for field, value in zip(fields, shared, strict=True):
                setattr(args, field, value)
            if state["freed"]:
                args.serialized_bytes_size = 0
            return OK

        return call

    return replace_function(name, give)


def _no_events(sound: Sound) -> Sound:
    def launch(args: Any) -> Any:
        args.device_complete_events = ffi.NULL
        return sound(args)

    return launch


def _launch_late() -> TableFaults:
    """Returns a mutant that reads the arguments of a launch again when a result is read."""
    lists: list[tuple[Any, Any]] = []

    def launch(args: Any) -> None:
        lists.append((args.argument_lists[0], args.argument_lists[0][0]))

    def read(sound: Sound) -> Sound:
        def call(args: Any) -> Any:
            changed = lists and lists[-1][0][0] != lists[-1][1]
            return refusal() if changed else sound(args)

        return call

    return replace_functions(
        {"LoadedExecutable_Execute": then(launch), "Buffer_ToHostBuffer": read}
    )


def _results_die_with_program() -> TableFaults:
    results: dict[Any, Any] = {}

    def launch(args: Any) -> None:
        results[args.executable] = args.output_lists[0][0]

    def destroy(args: Any) -> None:
        if args.executable in results:
            delete_buffer(results.pop(args.executable))

    return replace_functions(
        {"LoadedExecutable_Execute": then(launch), "LoadedExecutable_Destroy": before(destroy)}
    )


def _read_context(args: Any) -> None:
    """Reads the field that follows the options of an older host."""
    ctypes.string_at(address(args.options.context) or address(args.options), 1)


def _count_one(args: Any) -> None:
    args.num_outputs = args.num_outputs or 1


_NO_SHARDINGS = keep(ffi.new("char*[1]"))


def _state_no_sharding(args: Any) -> None:
    """States an empty list, instead of NULL, and no results."""
    args.shardings, args.num_outputs = _NO_SHARDINGS, 0


def _refuse_no_arguments(sound: Sound) -> Sound:
    return lambda args: sound(args) if args.num_args else refusal()


MUTANTS: Mapping[str, TableFaults] = {
    "table_programs.bounded": replace_function("Client_Compile", before(_read_to_nul)),
    "table_programs.bounded.cut": replace_function("Client_Compile", before(_read_behind_words)),
    "table_programs.forgotten": _borrow_program(),
    "table_programs.format.unknown": _take_format(lambda name: name.startswith(b"no such")),
    "table_programs.format.prefix": _take_format(lambda name: b"mlir".startswith(name[:4])),
    "table_programs.empty": replace_function("Client_Compile", before(_compile_nothing)),
    "table_programs.name": moves("Executable_Name", "executable_name", "executable_name_size"),
    "table_programs.outputs": moves(
        "Executable_OutputElementTypes", "output_types", "num_output_types"
    ),
    "table_programs.optimized.two_calls": replace_function(
        "Executable_OptimizedProgram", _take_no_room
    ),
    "table_programs.serialized": shares("Executable_Serialize", "serialized_executable"),
    "table_programs.assignment": shares(
        "LoadedExecutable_GetDeviceAssignment", "serialized_device_assignment"
    ),
    "table_programs.fingerprint": moves(
        "Executable_Fingerprint", "executable_fingerprint", "executable_fingerprint_size"
    ),
    "table_programs.launch.events": replace_function("LoadedExecutable_Execute", _no_events),
    "table_programs.launch.lists": _launch_late(),
    "table_programs.destroyed": _results_die_with_program(),
    "table_programs.deleted": replace_function("LoadedExecutable_Delete", keep_deleted),
    "table_programs.no_results": replace_function("Executable_NumOutputs", then(_count_one)),
    "table_programs.no_results.shardings": replace_extension_function(
        "Shardings", "Shardings_Executable_OutputShardings", then(_state_no_sharding)
    ),
    "table_programs.no_arguments": replace_function(
        "LoadedExecutable_Execute", _refuse_no_arguments
    ),
    "table_programs.launch.older_options": replace_function(
        "LoadedExecutable_Execute", before(_read_context)
    ),
}
