"""`open_table`: a library's ``PJRT_Api``, called without the corrections of plugrt's client."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.c_values import text
from plugrt.capi.abi.declarations import API_MINOR
from plugrt.capi.abi.process_map import AddressMap
from plugrt.capi.library.capsule import address_in
from plugrt.plugins.library import LibraryPlugin
from plugrt_sdk.conformance.expect import Mismatch, expect
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.conformance.verdict import NotTried, Verdict

SLOTS = tuple(name for name, _ in ffi.typeof("PJRT_Api").fields[3:])
"""The functions of the newest header that the kit knows, in order."""
_POISON = 0xA5
_ROOM = 64
"""The number of poison bytes after each argument struct, which functions must not write to."""


def open_table(plugin: LibraryPlugin) -> Any:
    """Returns the ``PJRT_Api*`` of a plugin; raises `Mismatch` if none can be read."""
    with plugin.starting():
        if plugin.c_api is not None:
            api = ffi.cast("PJRT_Api*", address_in(plugin.c_api, plugin.name))
        else:
            flags = ffi.RTLD_NOW | ffi.RTLD_LOCAL | getattr(ffi, "RTLD_NODELETE", os.RTLD_NODELETE)
            api = ffi.dlopen(plugin.library(), flags).GetPjrtApi()
    address = int(ffi.cast("uintptr_t", api))
    readable = address and AddressMap().readable(address, ffi.offsetof("PJRT_Api", SLOTS[0]))
    expect(readable, "the address of a PJRT_Api", hex(address))
    return api


def table_of(subject: PluginSubject) -> Any:
    """Returns the ``PJRT_Api*`` of the tested plugin, which must be a library."""
    assert isinstance(subject.plugin, LibraryPlugin)
    return open_table(subject.plugin)


def initialized_table(subject: PluginSubject) -> Any:
    """Returns the ``PJRT_Api*`` of the tested plugin, after ``PJRT_Plugin_Initialize``."""
    api = table_of(subject)
    args, _kept = new_args("Plugin_Initialize")
    call_well(api, "Plugin_Initialize", args)
    return api


def has_slot(api: Any, name: str) -> bool:
    """Whether a table is long enough to contain a function."""
    end = ffi.offsetof("PJRT_Api", name) + ffi.sizeof("void*")
    return bool(end <= api.struct_size)


def require_slot(api: Any, name: str) -> None:
    """Raises `NotTried` if a table's version has no such function."""
    if not has_slot(api, name):
        why = f"the table is of a version without PJRT_{name}"
        raise NotTried(Verdict.NOT_RUN, why, applies=False)


def require_no_longer_structs(api: Any) -> None:
    """Raises `NotTried` if a library is newer than the kit's header.

    It may have fields that the kit does not know, and write to them in a struct of that size.
    """
    if api.pjrt_api_version.minor_version > API_MINOR:
        why = f"the library is newer than the kit, which knows the C API up to 0.{API_MINOR}"
        raise NotTried(Verdict.NOT_RUN, why, applies=False)


def new_args(name: str, tail: int = 0) -> tuple[Any, Any]:
    """Returns the argument struct of a function, and its memory.

    After the struct are ``tail`` bytes of poison that ``struct_size`` includes, and others that it
    does not include: `call` raises for a function that writes to either.
    """
    kind = f"struct PJRT_{name}_Args"
    size = ffi.sizeof(kind)
    memory = ffi.new("char[]", size + tail + _ROOM)
    args = ffi.cast(f"{kind}*", memory)
    _memories[_address(args)] = memory
    poison_from(args, size)
    args.struct_size = size + tail
    return args, memory


def poison_from(args: Any, begin: int) -> None:
    """Fills the memory of `new_args` with poison, from a byte of the struct on."""
    memory = _memories[_address(args)]
    count = ffi.sizeof(memory) - begin
    ffi.memmove(memory + begin, bytes([_POISON]) * count, count)


@dataclass(frozen=True, slots=True)
class _Behind:
    """The memory after the argument struct of one call: poison from the byte ``begin`` on."""

    function: str
    memory: Any
    begin: int

    def expect_untouched(self) -> None:
        """Raises `Mismatch` if a byte was written."""
        found = bytes(ffi.buffer(self.memory))[self.begin :]
        if found.count(_POISON) == len(found):
            return
        places = [i for i, byte in enumerate(found) if byte != _POISON]
        raise Mismatch(
            f"PJRT_{self.function} to write nothing behind the first {self.begin} bytes of its "
            "argument struct",
            f"{len(places)} bytes changed, the first of them {places[0]} bytes behind",
        )


# Process-wide: a call gets only the address.
_memories: WeakValueDictionary[int, Any] = WeakValueDictionary()
"""The address of an argument struct, to its memory from `new_args` while that exists."""
# Process-wide: the calls of one check; a process runs one check at a time.
_called: list[_Behind] = []
"""The memory after the structs of calls since `nothing_written_later` began."""


def _address(pointer: Any) -> int:
    return int(ffi.cast("uintptr_t", pointer))


def call(api: Any, name: str, args: Any) -> Any:
    """Calls a function and returns its ``PJRT_Error*``.

    Raises `Mismatch` if the table lacks it, or if it writes beyond the size that the arguments
    state, or beyond the size in the header.
    """
    if not has_slot(api, name) or getattr(api, name) == ffi.NULL:
        raise Mismatch(f"a function PJRT_{name}", "NULL")
    if (memory := _memories.get(_address(args))) is None:  # the caller's struct
        return getattr(api, name)(args)
    behind = _Behind(name, memory, min(int(args.struct_size), ffi.sizeof(ffi.typeof(args).item)))
    error = getattr(api, name)(args)
    behind.expect_untouched()
    _called.append(behind)
    return error


@contextmanager
def nothing_written_later() -> Iterator[None]:
    """Raises `Mismatch` at the end if a call has written beyond its arguments after it returned."""
    _called.clear()
    yield
    for behind in _called:
        behind.expect_untouched()


def call_well(api: Any, name: str, args: Any) -> None:
    """Calls a function that must succeed; frees an error, and raises it as `Mismatch`."""
    error = call(api, name, args)
    if is_error(error):
        code, said = take_error(api, error)
        raise Mismatch(f"PJRT_{name} to succeed", f"code {code}: {said.partition(chr(10))[0]}")


def is_error(found: Any) -> bool:
    """Whether the result of a function is an error; functions without a result return None."""
    return found is not None and found != ffi.NULL


def make_error(api: Any, subject: PluginSubject) -> Any:
    """Returns the error for a topology that does not exist; `Unimplemented` if there is none."""
    args, _kept = new_args("TopologyDescription_Create")
    name = b"no such topology"
    args.topology_name, args.topology_name_size = ffi.from_buffer(name), len(name)
    error = call(api, "TopologyDescription_Create", args)
    if not is_error(error):
        destroy_handle(api, "TopologyDescription", "topology", args.topology)
        subject.refuse("PJRT_TopologyDescription_Create takes any name, so there is no error")
    return error


def destroy_handle(api: Any, kind: str, field: str, handle: Any) -> None:
    """Calls a ``_Destroy`` function, which must succeed."""
    args, _kept = new_args(f"{kind}_Destroy")
    setattr(args, field, handle)
    call_well(api, f"{kind}_Destroy", args)


def read_error(api: Any, error: Any) -> tuple[int, str]:
    """Reads the code and the message of an error, without freeing it."""
    args, _kept = new_args("Error_GetCode")
    args.error = error
    failed = call(api, "Error_GetCode", args)
    expect(failed == ffi.NULL, "PJRT_Error_GetCode to succeed", "an error of its own")
    said, _memory = new_args("Error_Message")
    said.error = error
    call(api, "Error_Message", said)
    return int(args.code), text(said.message, said.message_size)


def take_error(api: Any, error: Any) -> tuple[int, str]:
    """Reads the code and the message of an error, and frees it."""
    found = read_error(api, error)
    args, _kept = new_args("Error_Destroy")
    args.error = error
    call(api, "Error_Destroy", args)
    return found
