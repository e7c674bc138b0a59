"""Level 3 of PJRT libraries: effects of a launch on its arguments, without a host's corrections.

plugrt's own client marks donated arguments as deleted, without asking the library.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.proto_wire import compile_options
from plugrt.interface import CompileOptions, DeviceAssignment
from plugrt_sdk.conformance.check import Chapter, Level, Needs
from plugrt_sdk.conformance.checks.table.table_buffers import expect_on
from plugrt_sdk.conformance.expect import expect, expect_equal, expect_same_bits
from plugrt_sdk.conformance.guarded_memory import Guarded
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.conformance.sweeps import in_another_thread, within_limits
from plugrt_sdk.conformance.table_arrays import Arrays
from plugrt_sdk.conformance.table_client import UNIMPLEMENTED, TableClient, expect_mistake
from plugrt_sdk.testing import programs
from plugrt_sdk.testing.subject import ONE

CHAPTER = Chapter(
    "table_launches", Level.BEHAVES, "pjrt_c_api.h: PJRT_LoadedExecutable_Execute",
    needs=Needs.LIBRARY_CLIENT,
)  # fmt: skip

_ADD = programs.ADD.encode()
_DONATING = programs.DONATING_ADD.encode()
_PORTABLE = b"\x20\x01"
"""compile_portable_executable of a CompileOptionsProto."""
_DONATION = "pjrt_c_api.h: PJRT_ExecuteOptions.non_donatable_input_indices; tf.aliasing_output"


def launch(client: TableClient, program: bytes, *arguments: Any, kept: Sequence[int] = ()) -> Any:
    """Compiles and launches a program; returns its result, a ``PJRT_Buffer*``.

    ``kept`` are the arguments that must not be donated.
    """
    args, outputs = client.execute_args(client.compile(program)[0], *arguments)
    if kept:
        args.options.non_donatable_input_indices = client.keep(ffi.new("int64_t[]", list(kept)))
        args.options.num_non_donatable_input_indices = len(kept)
    failed = client.try_args("LoadedExecutable_Execute", args)
    expect(failed is None, "PJRT_LoadedExecutable_Execute to succeed", failed)
    return outputs[0]


def expect_deleted(client: TableClient, buffer: Any, deleted: bool, what: str) -> None:
    """Raises `Mismatch` unless the library states that a buffer is deleted, or that it is not."""
    found = bool(client.call("Buffer_IsDeleted", buffer=buffer).is_deleted)
    expect_equal(found, deleted, f"of {what}, is_deleted:")


def expect_unreadable(client: TableClient, buffer: Any, what: str) -> None:
    """Raises `Mismatch` unless a read of a buffer fails, in the call or by its event."""
    room = np.zeros(ONE.size, np.float32)
    args = client.args(
        "Buffer_ToHostBuffer", src=buffer, dst=ffi.from_buffer(room), dst_size=room.nbytes
    )
    error = client.try_args("Buffer_ToHostBuffer", args) or client.finish(args.event)
    expect(error, f"PJRT_Buffer_ToHostBuffer to refuse {what}", "no error")


@CHAPTER.check(
    "donated", rests_on=_DONATION,
    why="a model's weights take twice their memory, or are read after it has another's contents",
)  # fmt: skip
def donated(subject: PluginSubject) -> None:
    """An argument that a program aliases is deleted by its launch, and the other one is not."""
    client = TableClient.of(subject)
    x, y = client.put(ONE), client.put(10 * ONE)
    total = launch(client, _DONATING, x, y)
    expect_deleted(client, x, True, "the donated argument")
    expect_deleted(client, y, False, "the other argument")
    expect_deleted(client, total, False, "the result")
    expect_same_bits(client.get(total, ONE.size), 11 * ONE, "the result")
    expect_same_bits(client.get(y, ONE.size), 10 * ONE, "the other argument")


@CHAPTER.check(
    "donated.read", rests_on=_DONATION, why="a host reads memory that is another array's by now"
)  # fmt: skip
def donated_is_not_read(subject: PluginSubject) -> None:
    """A donated array cannot be read."""
    client = TableClient.of(subject)
    x, y = client.put(ONE), client.put(10 * ONE)
    launch(client, _DONATING, x, y)
    expect_unreadable(client, x, "a donated array")


@CHAPTER.check(
    "donated.launched", rests_on=_DONATION,
    why="a second step computes with memory that the first one gave away",
)  # fmt: skip
def donated_is_not_launched(subject: PluginSubject) -> None:
    """A donated array is refused by another launch, whose other argument stays alive."""
    client = TableClient.of(subject)
    x, y = client.put(ONE), client.put(10 * ONE)
    launch(client, _DONATING, x, y)
    for program in (_ADD, _DONATING):
        args, outputs = client.execute_args(client.compile(program)[0], y, x)
        failed = client.try_args("LoadedExecutable_Execute", args)
        if failed is None:  # the error may be the result's
            failed = client.finish(client.call("Buffer_ReadyEvent", buffer=outputs[0]).event)
        expect_mistake(failed, "PJRT_LoadedExecutable_Execute of a donated array")
    expect_deleted(client, y, False, "the argument beside it")
    expect_same_bits(client.get(y, ONE.size), 10 * ONE, "the argument beside it")


@CHAPTER.check(
    "kept", rests_on=_DONATION, why="an array that the host holds elsewhere, too, is gone"
)  # fmt: skip
def kept(subject: PluginSubject) -> None:
    """An argument that is named as not donatable is neither deleted nor changed by its launch."""
    client = TableClient.of(subject)
    x, y = client.put(ONE), client.put(10 * ONE)
    total = launch(client, _DONATING, x, y, kept=[0])
    expect_deleted(client, x, False, "the argument that is kept")
    expect_same_bits(client.get(total, ONE.size), 11 * ONE, "the result")
    expect_same_bits(client.get(x, ONE.size), ONE, "the argument that is kept")


@CHAPTER.check("arguments", why="a host that launches twice on one array finds it gone, or changed")
def arguments_stay(subject: PluginSubject) -> None:
    """A launch of a program without aliases leaves its arguments alive and unchanged."""
    client = TableClient.of(subject)
    x, y = client.put(ONE), client.put(10 * ONE)
    results = [launch(client, _ADD, x, y) for _ in range(2)]
    for buffer, wanted in ((x, ONE), (y, 10 * ONE), *((r, 11 * ONE) for r in results)):
        expect_deleted(client, buffer, False, "what is not donated")
        expect_same_bits(client.get(buffer, ONE.size), wanted, "what is not donated")


_CONSTANT = b"""func.func public @main() -> tensor<3xf32> {
  %0 = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  return %0 : tensor<3xf32>
}"""


@CHAPTER.check("again", why="a host that frees the result of one step frees that of the next")
def launches_give_arrays_of_their_own(subject: PluginSubject) -> None:
    """Two launches of a program without arguments return two arrays; one outlives the other."""
    client = TableClient.of(subject)
    loaded, _ = client.compile(_CONSTANT)
    found = []
    for _ in range(2):
        args, outputs = client.execute_args(loaded)
        failed = client.try_args("LoadedExecutable_Execute", args)
        expect(failed is None, "PJRT_LoadedExecutable_Execute to succeed", failed)
        found.append(outputs[0])
    expect(found[0] != found[1], "two arrays", "one address")
    client.call("Buffer_Delete", buffer=found[0])
    expect_deleted(client, found[1], False, "the other result")
    expect_same_bits(client.get(found[1], ONE.size), ONE, "the other result")


@CHAPTER.check(
    "execute_device", refusable=True, level=Level.COMPUTES,
    rests_on="pjrt_c_api.h: PJRT_LoadedExecutable_Execute_Args.execute_device",
    why="all launches of a program for any device land on one",
)  # fmt: skip
def execute_device(subject: PluginSubject) -> None:
    """A program that is compiled for any device runs on the one of its launch."""
    client = TableClient.of(subject)
    fields = client.compile_fields(client.program(_ADD))
    portable = client.keep(Guarded(compile_options(CompileOptions()) + _PORTABLE))
    fields |= {"compile_options": portable.pointer, "compile_options_size": portable.size}
    loaded = client.call("Client_Compile", **fields).executable
    for device in client.devices()[::-1]:
        x = client.put(ONE, device)
        args, outputs = client.execute_args(loaded, x, x)
        args.execute_device = device
        failed = client.try_args("LoadedExecutable_Execute", args)
        if failed and failed[0] == UNIMPLEMENTED:
            subject.refuse(failed[1])
        expect(failed is None, "a launch on the device that it names to succeed", failed)
        expect_same_bits(client.get(outputs[0], ONE.size), ONE + ONE, "the sum")
        expect_on(client, outputs[0], device, "the result")


_TIMES = 1001
_TWO_RESULTS = """func.func public @main(%a: tensor<3xf32>, %b: tensor<3xf32>)
    -> (tensor<3xf32>, tensor<3xf32>) {
  %0 = stablehlo.subtract %a, %b : tensor<3xf32>
  %1 = stablehlo.multiply %a, %b : tensor<3xf32>
  return %0, %1 : tensor<3xf32>, tensor<3xf32>
}"""


class _Launches:
    """Launches of one program with two arguments, by argument structs that are made once."""

    def __init__(self, arrays: Arrays, text: bytes, results: int, *devices: Any) -> None:
        self._arrays = arrays
        ids = []
        for device in devices:
            found = arrays.call("Device_GetDescription", device=device).device_description
            ids.append((arrays.call("DeviceDescription_Id", device_description=found).id,))
        options = CompileOptions(
            device_assignment=DeviceAssignment(tuple(ids)), num_replicas=len(ids)
        )
        loaded, _ = arrays.client.compile(text, options)
        keep = arrays.client.keep
        self._options = keep(ffi.new("PJRT_ExecuteOptions*"))
        self._options.struct_size = ffi.sizeof("PJRT_ExecuteOptions")
        self._options.non_donatable_input_indices = keep(ffi.new("int64_t[]", [0]))
        self._given = [keep(ffi.new("PJRT_Buffer*[2]")) for _ in devices]
        self._got = [keep(ffi.new("PJRT_Buffer*[]", results)) for _ in devices]
        self._events = keep(ffi.new("PJRT_Event*[]", len(devices)))
        self._fields = {
            "executable": loaded, "options": self._options, "num_args": 2,
            "num_devices": len(devices), "device_complete_events": self._events,
            "argument_lists": keep(ffi.new("PJRT_Buffer**[]", self._given)),
            "output_lists": keep(ffi.new("PJRT_Buffer**[]", self._got)),
        }  # fmt: skip

    def __call__(self, *arguments: tuple[Any, Any], kept: bool = False) -> list[list[Any]]:
        """Launches with the arguments of each device; ``kept`` if the first must stay alive."""
        for given, pair in zip(self._given, arguments, strict=True):
            given[0], given[1] = pair
        self._options.num_non_donatable_input_indices = int(kept)
        self._arrays.call("LoadedExecutable_Execute", **self._fields)
        for event in self._events:
            self._arrays.finish(event, "a launch")
        return [list(got) for got in self._got]


@CHAPTER.check(
    "often", rests_on="pjrt_c_api.h: PJRT_LoadedExecutable_Execute; PJRT_ExecuteOptions",
    why="the thousandth step of a program has the results of another, or of another device",
)  # fmt: skip
def launches_often(subject: PluginSubject) -> None:
    """Each of a thousand launches has its own results and event, and donates what it should.

    They run on one device and on two, with arguments that differ from launch to launch.
    """
    arrays = Arrays.of(subject)
    in_another_thread(partial(_launch_often, arrays, 3))
    _launch_often(arrays, _TIMES)


def _launch_often(arrays: Arrays, times: int) -> None:
    devices = arrays.devices[-2:]
    together = _Launches(arrays, _TWO_RESULTS.encode(), 2, *devices)
    donating = _Launches(arrays, _DONATING, 1, devices[-1])
    for number in within_limits(range(times)):
        parts = [ONE * (number % 1000) + i for i in range(len(devices))]
        pairs = [
            (arrays.put(x, device=device), arrays.put(ONE, device=device))
            for x, device in zip(parts, devices, strict=True)
        ]
        for i, results in enumerate(together(*pairs)):
            what = f"of launch {number}, on device {i} of {len(devices)}, the"
            arrays.expect_read(results[0], parts[i] - ONE, f"{what} difference")
            arrays.expect_read(results[1], parts[i] * ONE, f"{what} product")
            arrays.destroy(*results)
        for kept in (True, False):
            [[total]] = donating(pairs[-1], kept=kept)
            arrays.expect_read(total, parts[-1] + ONE, f"of launch {number}, the sum")
            for buffer, deleted in zip(pairs[-1], (not kept, False), strict=True):
                found = bool(arrays.call("Buffer_IsDeleted", buffer=buffer).is_deleted)
                words = "donated" if deleted else "kept"
                expect_equal(found, deleted, f"is_deleted of what launch {number} has {words}:")
            arrays.destroy(total)
        for pair in pairs:
            arrays.destroy(*pair)
