"""Level 0 of PJRT libraries: the function table and its extensions. Needs no device."""

from __future__ import annotations

from collections import Counter
from typing import Any

from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.c_values import text
from plugrt.capi.abi.process_map import AddressMap
from plugrt.capi.loading.extension_chain import extension_name, read_chain
from plugrt.capi.loading.library import OLDEST_MINOR
from plugrt.errors import PluginBroken
from plugrt_sdk.conformance.check import Chapter, Level, Needs
from plugrt_sdk.conformance.expect import Mismatch, expect, expect_equal
from plugrt_sdk.conformance.function_table import (
    SLOTS,
    call_well,
    has_slot,
    initialized_table,
    new_args,
    require_no_longer_structs,
    table_of,
)
from plugrt_sdk.conformance.subject import PluginSubject

CHAPTER = Chapter("abi", Level.INSTALLS, "pjrt_c_api.h: PJRT_Api", needs=Needs.LIBRARY)

_TAIL = 64
_VERSIONS = ("stablehlo_current_version", "stablehlo_minimum_version")


@CHAPTER.check("version", why="no host loads it, or one takes its functions for others")
def version(subject: PluginSubject) -> None:
    """The table states a version of the C API that hosts support: 0.29 or later."""
    stated = table_of(subject).pjrt_api_version
    found = (stated.major_version, stated.minor_version)
    expect(found[0] == 0 and found[1] >= OLDEST_MINOR, f"0.{OLDEST_MINOR} or later", found)


@CHAPTER.check("size", why="hosts read functions from beyond the table's end")
def size(subject: PluginSubject) -> None:
    """The table's size covers whole functions, and all of it is readable memory."""
    api = table_of(subject)
    first, stated = ffi.offsetof("PJRT_Api", SLOTS[0]), int(api.struct_size)
    whole = stated > first and (stated - first) % ffi.sizeof("void*") == 0
    expect(whole, f"{first} bytes and whole pointers", stated)
    address = int(ffi.cast("uintptr_t", api))
    expect(AddressMap().readable(address, stated), f"{stated} bytes of memory", "less")


@CHAPTER.check("slots", why="a host that calls a function crashes")
def slots(subject: PluginSubject) -> None:
    """No function of the table is NULL."""
    api = table_of(subject)
    missing = [name for name in SLOTS if has_slot(api, name) and getattr(api, name) == ffi.NULL]
    expect(
        not (found := missing),
        f"none of {sum(has_slot(api, n) for n in SLOTS)} functions NULL",
        found,
    )


@CHAPTER.check("slots.code", why="a host that calls a function crashes")
def slots_are_code(subject: PluginSubject) -> None:
    """Each function that is not NULL has an address in executable memory."""
    api, addresses = table_of(subject), AddressMap()
    found = {
        name: int(ffi.cast("uintptr_t", getattr(api, name)))
        for name in SLOTS
        if has_slot(api, name)
    }
    expect(any(found.values()), "at least one function", "all are NULL")
    wild = [name for name, place in found.items() if place and not addresses.executable(place)]
    expect(not wild, "none without code", wild)


@CHAPTER.check(
    "extensions",
    rests_on="pjrt_c_api.h: PJRT_Extension_Base",
    why="a host that looks for an extension crashes, or never ends",
)
def extensions(subject: PluginSubject) -> None:
    """The chain of extensions ends, and each has readable memory of its stated size."""
    try:
        read_chain(table_of(subject).extension_start, "the table", AddressMap())
    except PluginBroken as error:
        raise Mismatch("a chain of extensions that ends", str(error)) from None


@CHAPTER.check(
    "extensions.types",
    rests_on="pjrt_c_api.h: PJRT_Extension_Type",
    why="hosts take the first of two, which may be the wrong one",
)
def extension_types(subject: PluginSubject) -> None:
    """No two extensions have the same type."""
    api = table_of(subject)
    extensions(subject)
    kinds: Counter[str] = Counter()
    node = api.extension_start
    while node != ffi.NULL:
        kinds[extension_name(node.type)] += 1
        node = node.next
    twice = [kind for kind, count in kinds.items() if count > 1]
    expect(not twice, "none twice", twice)


@CHAPTER.check(
    "initialize",
    rests_on="pjrt_c_api.h: PJRT_Plugin_Initialize",
    why="two hosts in one process cannot both use it",
)
def initialize(subject: PluginSubject) -> None:
    """The library is initialised, and a second initialisation does no harm."""
    api = initialized_table(subject)
    args, _kept = new_args("Plugin_Initialize")
    call_well(api, "Plugin_Initialize", args)


@CHAPTER.check(
    "attributes",
    rests_on="pjrt_c_api.h: PJRT_Plugin_Attributes",
    why="hosts write programs at a version that it cannot read",
)
def attributes(subject: PluginSubject) -> None:
    """Attribute names are unique, and the attributes state the versions of StableHLO."""
    names = _attribute_names(initialized_table(subject))
    expect(
        not (found := [n for n, count in Counter(names).items() if count > 1]),
        "no name twice",
        found,
    )
    expect(
        not (found := [n for n in _VERSIONS if n not in names]),
        "none of the versions missing",
        found,
    )


@CHAPTER.check(
    "attributes.stable",
    rests_on="pjrt_c_api.h: attributes live for the process",
    why="a host that kept them reads freed memory",
)
def stable_attributes(subject: PluginSubject) -> None:
    """Attributes have the same address in each call."""
    api = initialized_table(subject)
    places = []
    for _ in range(2):
        args, _kept = new_args("Plugin_Attributes")
        call_well(api, "Plugin_Attributes", args)
        places.append(int(ffi.cast("uintptr_t", args.attributes)))
    expect_equal(hex(places[1]), hex(places[0]), "the address")


def _attribute_names(api: Any) -> list[str]:
    args, _kept = new_args("Plugin_Attributes")
    call_well(api, "Plugin_Attributes", args)
    found = [args.attributes[i] for i in range(args.num_attributes)]
    return [text(one.name, one.name_size) for one in found]


@CHAPTER.check(
    "args.larger",
    rests_on="pjrt_c_api.h: struct_size",
    why="a newer host, whose structs are longer, cannot use it",
)
def larger_args(subject: PluginSubject) -> None:
    """An argument struct longer than known is accepted, and its tail is not written to."""
    api = initialized_table(subject)
    require_no_longer_structs(api)
    args, _kept = new_args("Plugin_Attributes", _TAIL)
    call_well(api, "Plugin_Attributes", args)
