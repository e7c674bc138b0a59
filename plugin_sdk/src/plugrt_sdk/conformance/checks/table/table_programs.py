"""Level 2 of PJRT libraries: programs by calls of the function table, without corrections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from plugrt.capi.abi._abi import ffi
from plugrt_sdk.conformance.check import Chapter, Demand, Level, Needs
from plugrt_sdk.conformance.checks.handles import expect_stable, expect_text
from plugrt_sdk.conformance.expect import expect, expect_equal, expect_same_bits
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.conformance.table_client import TableClient, text_at
from plugrt_sdk.testing import programs
from plugrt_sdk.testing.subject import ONE

CHAPTER = Chapter(
    "table_programs", Level.COMPUTES, "pjrt_c_api.h: PJRT_Program, PJRT_*Executable_*",
    needs=Needs.LIBRARY_CLIENT,
)  # fmt: skip

_ADD = programs.ADD.encode()


def _launch(client: TableClient, args: Any, outputs: Any) -> Any:
    failed = client.try_args("LoadedExecutable_Execute", args)
    expect(failed is None, "PJRT_LoadedExecutable_Execute to succeed", failed)
    return client.get(outputs[0], ONE.size)


@CHAPTER.check("bounded", why="a host whose strings do not end with NUL crashes it")
def program_is_bounded(subject: PluginSubject) -> None:
    """Program, format and options are read for their stated sizes."""
    client = TableClient.of(subject)
    loaded, _ = client.compile(_ADD)
    args, outputs = client.execute_args(loaded, client.put(ONE), client.put(ONE))
    expect_same_bits(_launch(client, args, outputs), ONE + ONE, "the sum")


@CHAPTER.check("forgotten", why="a host that frees a program after compiling it crashes")
def program_is_forgotten(subject: PluginSubject) -> None:
    """Program and options may be freed after the call that compiles them."""
    client = TableClient.of(subject)
    text = ffi.new("char[]", _ADD)
    program = client.program(_ADD)
    program.code, program.code_size = text, len(_ADD)
    made = client.call("Client_Compile", **client.compile_fields(program))
    ffi.memmove(text, b"x" * len(_ADD), len(_ADD))
    program.format, program.format_size = ffi.NULL, 0
    args, outputs = client.execute_args(made.executable, client.put(ONE), client.put(ONE))
    expect_same_bits(_launch(client, args, outputs), ONE + ONE, "the sum")


def _refuses(subject: PluginSubject, program: Any, what: str) -> None:
    client = TableClient.of(subject)
    error = client.refused("Client_Compile", **client.compile_fields(program(client)))
    expect(error, f"PJRT_Client_Compile to refuse {what}", "no error")


@CHAPTER.check("format.unknown", why="a program is taken for one of another language")
def unknown_format(subject: PluginSubject) -> None:
    """A format that does not exist is refused."""
    _refuses(subject, lambda client: client.program(_ADD, b"no such format"), "its format")


@CHAPTER.check("format.prefix", why="a program is taken for one of another language")
def format_prefix(subject: PluginSubject) -> None:
    """A format is compared as a whole: a prefix of it, and a longer word, are other formats."""
    for form in (b"", b"ml", b"mlir2"):
        _refuses(subject, lambda client, form=form: client.program(_ADD, form), f"{form!r}")


@CHAPTER.check("bounded.cut", why="a host that read half a file crashes")
def cut_program_is_bounded(subject: PluginSubject) -> None:
    """A program that ends in the middle of a word is refused, and not read beyond its end."""
    _refuses(subject, lambda client: client.program(b"func.func"), "half a program")


@CHAPTER.check("empty", why="a host crashes on a file that was not written")
def empty_program(subject: PluginSubject) -> None:
    """A program of no bytes, at an address or at NULL, is refused, or fails as an empty module."""
    for null in (False, True):

        def make(client: TableClient, null: bool = null) -> Any:
            program = client.program(b"")
            program.code = ffi.NULL if null else program.code
            return program

        _refuses(subject, make, "a program of no bytes")


@CHAPTER.check("name", why="a host that kept the pointer reads freed memory")
def names_are_stable(subject: PluginSubject) -> None:
    """An executable's name keeps its address while the executable lives."""
    client = TableClient.of(subject)
    _, executable = client.compile(_ADD)
    expect_text(client, "Executable_Name", "executable_name", executable=executable)


@CHAPTER.check("outputs", why="a host that kept the pointer reads freed memory")
def outputs_are_stable(subject: PluginSubject) -> None:
    """Dtypes and dimensions of the results keep their addresses while the executable lives."""
    client = TableClient.of(subject)
    _, executable = client.compile(_ADD)
    expect_stable(
        client, "Executable_OutputElementTypes", "output_types", "num_output_types",
        executable=executable,
    )  # fmt: skip
    expect_stable(
        client, "Executable_OutputDimensions", "dims", "dim_sizes", "num_outputs",
        executable=executable,
    )  # fmt: skip


@CHAPTER.check(
    "optimized.two_calls",
    refusable=True,
    rests_on="pjrt_c_api.h: PJRT_Executable_OptimizedProgram",
    why="hosts make room for too few bytes",
)
def optimized_in_two_calls(subject: PluginSubject) -> None:
    """The optimised program is requested twice: without room for its size, then for its bytes."""
    client = TableClient.of(subject)
    _, executable = client.compile(_ADD)
    program = client.keep(ffi.new("PJRT_Program*"))
    program.struct_size = ffi.sizeof("PJRT_Program")
    client.call("Executable_OptimizedProgram", executable=executable, program=program)
    size = int(program.code_size)
    expect(size > 0, "the size of a program", size)
    room = client.keep(ffi.new("char[]", size + 8))
    ffi.memmove(room, b"\xa5" * (size + 8), size + 8)
    program.code = room
    client.call("Executable_OptimizedProgram", executable=executable, program=program)
    held = bytes(ffi.buffer(room))
    expect(held[:size] != b"\xa5" * size, "a program", "nothing was written")
    expect_equal(held[size:], b"\xa5" * 8, "what is behind the room:")


def _owned(
    client: TableClient, name: str, given: dict[str, Any], owner: str, deleter: str
) -> tuple[Callable[[], bytes], Callable[[], None]]:
    """Returns functions that read the library's bytes, and that free them (to be called once)."""
    args = client.call(name, **given)
    free, held = getattr(args, deleter), getattr(args, owner)
    expect(free != ffi.NULL, f"of PJRT_{name}, a function that frees the bytes", "NULL")
    return (
        lambda: text_at(args.serialized_bytes, args.serialized_bytes_size),
        lambda: free(held),
    )


def expect_owned(client: TableClient, name: str, owner: str, deleter: str, **given: Any) -> None:
    """Two serialised executables are independent: freeing one leaves the other intact."""
    first, free_first = _owned(client, name, given, owner, deleter)
    second, free_second = _owned(client, name, given, owner, deleter)
    expect(first() and second(), f"bytes from PJRT_{name}", first())
    before = second()
    free_first()
    expect(second() == before, "the other result to be as it was", "other bytes")
    free_second()
    third, free_third = _owned(client, name, given, owner, deleter)
    expect(third(), "bytes once more", third())
    free_third()


@CHAPTER.check("serialized", refusable=True, why="bytes are freed twice, or never")
def serialized_is_owned(subject: PluginSubject) -> None:
    """The caller frees a serialised executable with the returned function."""
    client = TableClient.of(subject)
    _, executable = client.compile(_ADD)
    expect_owned(
        client, "Executable_Serialize", "serialized_executable", "serialized_executable_deleter",
        executable=executable,
    )  # fmt: skip


@CHAPTER.check("assignment", refusable=True, why="bytes are freed twice, or never")
def assignment_is_owned(subject: PluginSubject) -> None:
    """The caller frees a program's device assignment with the returned function."""
    client = TableClient.of(subject)
    loaded, _ = client.compile(_ADD)
    expect_owned(
        client, "LoadedExecutable_GetDeviceAssignment", "serialized_device_assignment",
        "serialized_device_assignment_deleter", executable=loaded,
    )  # fmt: skip


@CHAPTER.check("fingerprint", refusable=True, why="a host that kept the pointer reads freed memory")
def fingerprint_is_stable(subject: PluginSubject) -> None:
    """An executable's fingerprint keeps its address while the executable lives."""
    client = TableClient.of(subject)
    _, executable = client.compile(_ADD)
    found = client.call("Executable_Fingerprint", executable=executable)
    expect(found.executable_fingerprint_size > 0, "a fingerprint", "none")
    expect_stable(
        client, "Executable_Fingerprint", "executable_fingerprint", "executable_fingerprint_size",
        executable=executable,
    )  # fmt: skip


@CHAPTER.check("launch.events", why="a host waits for an event that is not there")
def launch_gives_events(subject: PluginSubject) -> None:
    """A launch that is asked for an event returns one, which becomes ready without an error."""
    client = TableClient.of(subject)
    loaded, _ = client.compile(_ADD)
    args, outputs = client.execute_args(loaded, client.put(ONE), client.put(ONE))
    events = client.keep(ffi.new("PJRT_Event*[1]"))
    args.device_complete_events = events
    result = _launch(client, args, outputs)
    expect(events[0] != ffi.NULL, "an event in device_complete_events", "NULL")
    expect_equal(client.finish(events[0]), None, "no error of the launch:")
    expect_same_bits(result, ONE + ONE, "the sum")


@CHAPTER.check("launch.lists", why="a host that reuses its lists launches on the wrong arrays")
def launch_forgets_lists(subject: PluginSubject) -> None:
    """Lists of arguments and options may be freed after the call."""
    client = TableClient.of(subject)
    loaded, _ = client.compile(_ADD)
    args, outputs = client.execute_args(loaded, client.put(ONE), client.put(2 * ONE))
    failed = client.try_args("LoadedExecutable_Execute", args)
    expect(failed is None, "PJRT_LoadedExecutable_Execute to succeed", failed)
    args.argument_lists[0][0] = args.argument_lists[0][1] = ffi.NULL
    args.options.struct_size = 0
    expect_same_bits(client.get(outputs[0], ONE.size), ONE + 2 * ONE, "the sum")


@CHAPTER.check("no_results", why="a program that is run for its effects crashes its host")
def no_results(subject: PluginSubject) -> None:
    """A program without results states 0, is launched without lists for them, and ends."""
    client = TableClient.of(subject)
    loaded, executable = client.compile(programs.NO_RESULTS.encode())
    counts = {
        "Executable_NumOutputs": "num_outputs",
        "Executable_OutputElementTypes": "num_output_types",
        "Executable_OutputDimensions": "num_outputs",
    }
    for name, count in counts.items():
        found = client.call(name, executable=executable)
        expect_equal(int(getattr(found, count)), 0, f"{count} of PJRT_{name}:")
    args, _ = client.execute_args(loaded, client.put(ONE))
    args.output_lists[0] = ffi.NULL  # like a C++ host's empty list
    args.device_complete_events = client.keep(ffi.new("PJRT_Event*[1]"))
    failed = client.try_args("LoadedExecutable_Execute", args)
    expect(failed is None, "PJRT_LoadedExecutable_Execute to succeed", failed)
    failed = client.finish(args.device_complete_events[0])
    expect(failed is None, "the launch to succeed", failed)


@CHAPTER.check(
    "no_results.shardings", refusable=True, level=Level.BEHAVES,
    rests_on="XLA's C API client, which expects one sharding of an empty tuple",
    demand=Demand.REFERENCE,
    why="under JAX no program without results compiles",
)  # fmt: skip
def shardings_of_no_results(subject: PluginSubject) -> None:
    """A program without results states no sharding (NULL), or one for an empty tuple."""
    client = TableClient.of(subject)
    _, executable = client.compile(programs.NO_RESULTS.encode())
    name = "Shardings_Executable_OutputShardings"
    found = client.call_extension("Shardings", name, executable=executable)
    stated = "NULL" if found.shardings == ffi.NULL else int(found.num_outputs)
    expect(stated in ("NULL", 1), "NULL, or one sharding", stated)


@CHAPTER.check("no_arguments", why="a program that makes arrays crashes its host")
def no_arguments(subject: PluginSubject) -> None:
    """A program without arguments is launched without a list of them."""
    client = TableClient.of(subject)
    loaded, _ = client.compile(programs.CONSTANT.encode())
    args, outputs = client.execute_args(loaded)
    args.argument_lists[0] = ffi.NULL  # like a C++ host's empty list
    failed = client.try_args("LoadedExecutable_Execute", args)
    expect(failed is None, "PJRT_LoadedExecutable_Execute to succeed", failed)
    found = np.frombuffer(client.read(outputs[0], 8), np.int32)
    expect_same_bits(found, np.array([7, -1], np.int32), "the constant")


@CHAPTER.check(
    "launch.older_options",
    rests_on="pjrt_c_api.h: PJRT_ExecuteOptions, which grew at its end",
    why="an older host crashes where it launches a program",
)
def launch_takes_older_options(subject: PluginSubject) -> None:
    """Launch options shorter than known are accepted or refused, and not read beyond their end."""
    client = TableClient.of(subject)
    loaded, _ = client.compile(_ADD)
    args, outputs = client.execute_args(loaded, client.put(ONE), client.put(ONE))
    end = ffi.offsetof("PJRT_ExecuteOptions", "context")
    ffi.memmove(ffi.cast("char*", args.options) + end, b"\xa5" * 8, 8)
    args.options.struct_size = end
    if client.try_args("LoadedExecutable_Execute", args) is None:
        expect_same_bits(client.get(outputs[0], ONE.size), ONE + ONE, "the sum")


@CHAPTER.check("destroyed", why="a host that frees an executable loses the arrays that it made")
def results_outlive_their_program(subject: PluginSubject) -> None:
    """Results outlive the program that made them, and their arguments."""
    client = TableClient.of(subject)
    loaded, executable = client.compile(_ADD)
    first, second = client.put(ONE), client.put(ONE)
    args, outputs = client.execute_args(loaded, first, second)
    failed = client.try_args("LoadedExecutable_Execute", args)
    expect(failed is None, "PJRT_LoadedExecutable_Execute to succeed", failed)
    client.call("Executable_Destroy", executable=executable)
    client.call("LoadedExecutable_Destroy", executable=loaded)
    for buffer in (first, second):
        client.call("Buffer_Destroy", buffer=buffer)
    found = client.get(outputs[0], ONE.size)
    expect_same_bits(np.asarray(found), ONE + ONE, "the sum")


@CHAPTER.check(
    "deleted", level=Level.BEHAVES,
    rests_on="pjrt_c_api.h: PJRT_LoadedExecutable_Delete, PJRT_LoadedExecutable_IsDeleted",
    why="a host that gives a program up to make room gets none, or launches what is gone",
)  # fmt: skip
def deleted(subject: PluginSubject) -> None:
    """A program states whether it was deleted, and one that was not computes."""
    client = TableClient.of(subject)
    gone, other = client.compile(_ADD)[0], client.compile(_ADD)[0]
    _expect_deleted(client, gone, False)
    client.call("LoadedExecutable_Delete", executable=gone)
    _expect_deleted(client, gone, True)
    _expect_deleted(client, other, False)
    args, outputs = client.execute_args(other, client.put(ONE), client.put(ONE))
    expect_same_bits(_launch(client, args, outputs), ONE + ONE, "of the other program, the sum")
    client.call("LoadedExecutable_Destroy", executable=gone)


def _expect_deleted(client: TableClient, loaded: Any, deleted: bool) -> None:
    found = client.call("LoadedExecutable_IsDeleted", executable=loaded).is_deleted
    expect_equal(bool(found), deleted, "is_deleted")
