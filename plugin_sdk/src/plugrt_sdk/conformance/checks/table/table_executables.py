"""Level 2 of PJRT libraries: wrong launches, and other uses of programs.

plugrt's client checks arguments and devices itself before it launches.
"""

from __future__ import annotations

from typing import Any

from plugrt.capi.abi import proto_wire
from plugrt.capi.abi._abi import ffi
from plugrt.interface import CompileOptions, DeviceAssignment
from plugrt_sdk.conformance.check import Chapter, Level, Needs
from plugrt_sdk.conformance.checks.table.table_programs import expect_owned
from plugrt_sdk.conformance.expect import expect, expect_equal, expect_same_bits
from plugrt_sdk.conformance.guarded_memory import Guarded
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.conformance.table_client import UNIMPLEMENTED, TableClient, expect_mistake, text_at
from plugrt_sdk.testing import programs
from plugrt_sdk.testing.subject import ONE

CHAPTER = Chapter(
    "table_executables", Level.COMPUTES, "pjrt_c_api.h: PJRT_LoadedExecutable_Execute",
    needs=Needs.LIBRARY_CLIENT,
)  # fmt: skip

_ADD = programs.ADD.encode()
_NOT_FOUND = 5


def _expect_sum(client: TableClient, args: Any, outputs: Any) -> None:
    failed = client.try_args("LoadedExecutable_Execute", args)
    expect(failed is None, "PJRT_LoadedExecutable_Execute to succeed", failed)
    expect_same_bits(client.get(outputs[0], ONE.size), ONE + ONE, "the sum")


@CHAPTER.check("arguments", why="the program reads arguments behind the list that it was given")
def wrong_number_of_arguments(subject: PluginSubject) -> None:
    """A launch with fewer arguments than the program has, or more, is refused."""
    client = TableClient.of(subject)
    loaded, _ = client.compile(_ADD)
    x = client.put(ONE)
    for count in (0, 1, 3):
        args, _ = client.execute_args(loaded, *[x] * count)
        error = client.try_args("LoadedExecutable_Execute", args)
        expect_mistake(error, f"PJRT_LoadedExecutable_Execute of {count} arguments for 2")
    _expect_sum(client, *client.execute_args(loaded, x, x))


@CHAPTER.check("devices", why="the program reads arguments of devices that it was given none for")
def wrong_number_of_devices(subject: PluginSubject) -> None:
    """A launch on two devices of a program that was compiled for one is refused."""
    client = TableClient.of(subject)
    loaded, _ = client.compile(_ADD)
    x = client.put(ONE)
    args, _ = client.execute_args(loaded, x, x)
    inner, outputs = args.argument_lists[0], [client.keep(ffi.new("PJRT_Buffer*[1]"))] * 2
    args.argument_lists = client.keep(ffi.new("PJRT_Buffer**[]", [inner, inner]))
    args.output_lists = client.keep(ffi.new("PJRT_Buffer**[]", outputs))
    args.num_devices = 2
    error = client.try_args("LoadedExecutable_Execute", args)
    expect_mistake(error, "PJRT_LoadedExecutable_Execute on two devices for one")
    _expect_sum(client, *client.execute_args(loaded, x, x))


@CHAPTER.check(
    "options.nonsense", rests_on="pjrt_c_api.h: PJRT_Client_Compile_Args.compile_options",
    why="a program runs with other options than the host stated, without an error",
)  # fmt: skip
def nonsense_options(subject: PluginSubject) -> None:
    """Compile options that are not a CompileOptionsProto are refused."""
    client = TableClient.of(subject)
    nonsense = client.keep(Guarded(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
    fields = client.compile_fields(client.program(_ADD))
    fields |= {"compile_options": nonsense.pointer, "compile_options_size": nonsense.size}
    error = client.refused("Client_Compile", **fields)
    expect_mistake(error, "PJRT_Client_Compile with options that are no message")


def _first_two(client: TableClient) -> CompileOptions:
    """Returns options for a replica on each of the first two devices, or on the only one."""
    described = [
        client.call("Device_GetDescription", device=device).device_description
        for device in client.devices()[:2]
    ]
    ids = [client.call("DeviceDescription_Id", device_description=d).id for d in described]
    assignment = DeviceAssignment(tuple((i,) for i in ids))
    return CompileOptions(num_replicas=len(ids), device_assignment=assignment)


@CHAPTER.check(
    "options", refusable=True, rests_on="pjrt_c_api.h: PJRT_Executable_GetCompileOptions",
    why="hosts that look at a program take it for one of another number of devices",
)  # fmt: skip
def options_of_program(subject: PluginSubject) -> None:
    """A program returns the options that it was compiled with, which the caller owns."""
    client = TableClient.of(subject)
    wanted = _first_two(client)
    _, executable = client.compile(_ADD, wanted)
    name, field = "Executable_GetCompileOptions", "serialized_compile_options"
    args = client.call(name, executable=executable)
    said = text_at(args.serialized_bytes, args.serialized_bytes_size)
    getattr(args, f"{field}_deleter")(getattr(args, field))
    found = proto_wire.read_compile_options(said)
    expect_equal(found.num_replicas, wanted.num_replicas, "num_replicas")
    expect_equal(found.device_assignment, wanted.device_assignment, "the device assignment")
    expect_owned(client, name, field, f"{field}_deleter", executable=executable)


@CHAPTER.check(
    "loaded", refusable=True, rests_on="pjrt_c_api.h: PJRT_Compile, PJRT_Client_Load",
    why="programs that were compiled for a topology compute something else",
)  # fmt: skip
def loaded_program(subject: PluginSubject) -> None:
    """A program that was compiled for the client's topology is loaded, and computes."""
    client = TableClient.of(subject)
    topology = client.call("Client_TopologyDescription", client=client.handle).topology
    fields = client.compile_fields(client.program(_ADD))
    made = client.args("Compile", topology=topology, **fields)
    failed = client.try_args("Compile", made)
    if failed and failed[0] in (_NOT_FOUND, UNIMPLEMENTED):  # the library has no compiler
        subject.refuse(failed[1])
    expect(failed is None, "PJRT_Compile to succeed", failed)
    again = {key: fields[key] for key in ("compile_options", "compile_options_size")}
    loaded = client.call(
        "Client_Load", client=client.handle, executable=made.executable, **again
    ).loaded_executable
    _expect_sum(client, *client.execute_args(loaded, client.put(ONE), client.put(ONE)))


@CHAPTER.check(
    "context", refusable=True, rests_on="pjrt_c_api.h: PJRT_ExecuteContext_Create",
    why="hosts that give a launch data for its handlers cannot launch",
)  # fmt: skip
def launch_with_context(subject: PluginSubject) -> None:
    """A launch with an empty context computes as one without."""
    client = TableClient.of(subject)
    context = client.call("ExecuteContext_Create").context
    loaded, _ = client.compile(_ADD)
    args, outputs = client.execute_args(loaded, client.put(ONE), client.put(ONE))
    args.options.context = context
    _expect_sum(client, args, outputs)
    client.call("ExecuteContext_Destroy", context=context)
