"""Level 1 of PJRT libraries: argument structs of hosts newer or older than the library.

Each function of an object is called with a struct that is longer than known, and with one that
lacks its last field. `plugrt_sdk.conformance.function_table.call` checks the memory after the
struct, as in each call of each check.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from plugrt.capi.abi._abi import ffi
from plugrt.errors import Unimplemented
from plugrt_sdk.conformance.check import Chapter, Level, Needs
from plugrt_sdk.conformance.expect import expect, expect_equal
from plugrt_sdk.conformance.function_table import (
    has_slot,
    poison_from,
    require_no_longer_structs,
)
from plugrt_sdk.conformance.guarded_memory import Room
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.conformance.table_client import TableClient
from plugrt_sdk.testing import programs
from plugrt_sdk.testing.subject import ONE

CHAPTER = Chapter(
    "table_structs", Level.BUFFERS, "pjrt_c_api.h: struct_size", needs=Needs.LIBRARY_CLIENT
)

_TAIL = 48
_ADD = programs.ADD.encode()


@dataclass(frozen=True, slots=True)
class Group:
    """Functions of one kind of object: the last words of their names, and how one is made."""

    kind: str
    field: str
    functions: tuple[str, ...]
    make: Callable[[TableClient], Any]
    level: Level = Level.BUFFERS

    def names(self, client: TableClient) -> list[str]:
        """Returns the functions that the table is new enough to have."""
        names = [f"{self.kind}_{function}" for function in self.functions]
        return [name for name in names if has_slot(client.api, name)]


def _description(client: TableClient) -> Any:
    found = client.call("Device_GetDescription", device=client.devices()[0])
    return found.device_description


def _memory(client: TableClient) -> Any:
    if not (found := client.memories()):
        raise Unimplemented("the client has no memories")
    return found[0]


def _buffer(client: TableClient) -> Any:
    return client.put(np.ones((2, 3), np.float32))


def _ready_event(client: TableClient) -> Any:
    return client.call("Buffer_ReadyEvent", buffer=_buffer(client)).event


GROUPS: Mapping[str, Group] = {
    "client": Group("Client", "client", (
        "PlatformName", "PlatformVersion", "ProcessIndex", "Devices", "AddressableDevices",
        "AddressableMemories", "TopologyDescription",
    ), lambda client: client.handle),
    "device": Group("Device", "device", (
        "GetDescription", "IsAddressable", "LocalHardwareId", "AddressableMemories",
        "DefaultMemory", "MemoryStats",
    ), lambda client: client.devices()[0]),
    "description": Group("DeviceDescription", "device_description", (
        "Id", "ProcessIndex", "Attributes", "Kind", "DebugString", "ToString",
    ), _description),
    "memory": Group("Memory", "memory", (
        "Id", "Kind", "DebugString", "ToString", "AddressableByDevices",
    ), _memory),
    "buffer": Group("Buffer", "buffer", (
        "ElementType", "Dimensions", "UnpaddedDimensions", "DynamicDimensionIndices",
        "GetMemoryLayout", "OnDeviceSizeInBytes", "Device", "Memory", "IsDeleted", "IsOnCpu",
    ), _buffer),
    "event": Group("Event", "event", ("IsReady", "Error", "Await"), _ready_event),
    "program": Group("Executable", "executable", (
        "Name", "NumReplicas", "NumPartitions", "NumOutputs", "SizeOfGeneratedCodeInBytes",
        "GetCostAnalysis", "OutputElementTypes", "OutputDimensions", "OutputMemoryKinds",
        "Fingerprint", "GetCompiledMemoryStats",
    ), lambda client: client.compile(_ADD)[1], Level.COMPUTES),
    "loaded": Group("LoadedExecutable", "executable", ("AddressableDevices", "IsDeleted"),
                    lambda client: client.compile(_ADD)[0], Level.COMPUTES),
}  # fmt: skip
"""Functions of one object that return facts about it, by the last part of a check's id."""


def _takes_larger(subject: PluginSubject, group: Group) -> None:
    """Calls each function twice, and expects the same answer with the larger struct."""
    client = TableClient.of(subject)
    require_no_longer_structs(client.api)
    handle = {group.field: group.make(client)}
    for name in group.names(client):
        usual = client.refused(name, **handle)
        found = client.try_args(name, client.args(name, _TAIL, **handle))
        expect_equal(found and found[0], usual and usual[0], f"of PJRT_{name}, the error's code:")


def last_output(name: str, field: str) -> str:
    """Returns the last field of a function's struct; empty if that is the object itself."""
    last = str(ffi.typeof(f"struct PJRT_{name}_Args").fields[-1][0])
    return "" if last == field else last


def _takes_smaller(subject: PluginSubject, group: Group) -> None:
    client = TableClient.of(subject)
    handle = {group.field: group.make(client)}
    for name in group.names(client):
        if last := last_output(name, group.field):
            args = client.args(name, **handle)
            args.struct_size = ffi.offsetof(f"struct PJRT_{name}_Args", last)
            poison_from(args, args.struct_size)
            client.try_args(name, args)


for _name, _group in GROUPS.items():
    _stated = ", ".join(f"PJRT_{_group.kind}_{function}" for function in _group.functions)
    CHAPTER.add(
        f"larger.{_name}",
        f"The functions PJRT_{_group.kind}_* take a struct that is longer than known, and leave "
        "what is behind theirs alone.",
        partial(_takes_larger, group=_group), level=_group.level,
        refusable=_name == "memory",
        rests_on=f"pjrt_c_api.h: struct_size of {_stated}",
        why="a newer host, whose structs are longer, cannot use it, or has its memory overwritten",
    )  # fmt: skip
    CHAPTER.add(
        f"smaller.{_name}",
        f"The functions PJRT_{_group.kind}_* write nothing behind a struct that lacks its last "
        "field.",
        partial(_takes_smaller, group=_group), level=_group.level,
        refusable=_name == "memory",
        rests_on=f"pjrt_c_api.h: struct_size of {_stated}",
        why="an older host, whose structs are shorter, has its own memory overwritten",
    )  # fmt: skip


@CHAPTER.check(
    "larger.launch", level=Level.COMPUTES,
    rests_on="pjrt_c_api.h: struct_size of PJRT_LoadedExecutable_Execute, PJRT_Buffer_ToHostBuffer",
    why="a newer host, whose structs are longer, cannot use it, or has its memory overwritten",
)  # fmt: skip
def launch_takes_larger(subject: PluginSubject) -> None:
    """A launch and a read accept structs that are longer than known, and write nothing behind."""
    client = TableClient.of(subject)
    require_no_longer_structs(client.api)
    one = client.put(ONE)
    launch, outputs = client.execute_args(client.compile(_ADD)[0], one, one, tail=_TAIL)
    failed = client.try_args("LoadedExecutable_Execute", launch)
    expect(failed is None, "PJRT_LoadedExecutable_Execute to succeed", failed)
    room = client.keep(Room(ONE.nbytes))
    read = client.args(
        "Buffer_ToHostBuffer", _TAIL, src=outputs[0], dst=room.pointer, dst_size=ONE.nbytes
    )
    failed = client.try_args("Buffer_ToHostBuffer", read) or client.finish(read.event)
    expect(failed is None, "PJRT_Buffer_ToHostBuffer to succeed", failed)
    expect_equal(np.frombuffer(room.content(), np.float32).tolist(), (ONE + ONE).tolist(), "sums")
