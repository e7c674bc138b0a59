"""Level 0 of PJRT libraries: argument structs of older and newer hosts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from plugrt.capi.abi._abi import ffi
from plugrt_sdk.conformance.check import Chapter, Level, Needs
from plugrt_sdk.conformance.expect import Mismatch, expect, expect_equal
from plugrt_sdk.conformance.function_table import (
    call,
    destroy_handle,
    initialized_table,
    is_error,
    make_error,
    new_args,
    poison_from,
    require_no_longer_structs,
    take_error,
)
from plugrt_sdk.conformance.guarded_memory import Guarded
from plugrt_sdk.conformance.subject import PluginSubject

CHAPTER = Chapter("arguments", Level.INSTALLS, "pjrt_c_api.h: struct_size", needs=Needs.LIBRARY)

_TAIL = 64
_UNKNOWN_EXTENSION = 9999
_NO_TOPOLOGY = b"no such topology"
FUNCTIONS: Mapping[str, str] = {
    "initialize": "Plugin_Initialize",
    "attributes": "Plugin_Attributes",
    "topology": "TopologyDescription_Create",
    "error_code": "Error_GetCode",
    "error_message": "Error_Message",
}
"""Functions that need neither a client nor a device, by the last part of a check's id."""
LAST_OUTPUT: Mapping[str, str] = {
    "attributes": "num_attributes",
    "topology": "topology",
    "error_code": "code",
}
"""The last field of each, which an older host's struct may lack."""


class _Call:
    """A call of one of `FUNCTIONS`: its arguments, and whether it succeeded."""

    def __init__(self, subject: PluginSubject, name: str, tail: int = 0) -> None:
        self.api = initialized_table(subject)
        self.function = FUNCTIONS[name]
        self.error = make_error(self.api, subject) if name.startswith("error_") else ffi.NULL
        self.args, self._kept = new_args(self.function, tail)
        if self.error != ffi.NULL:
            self.args.error = self.error
        if name == "topology":
            self.args.topology_name = ffi.from_buffer(_NO_TOPOLOGY)
            self.args.topology_name_size = len(_NO_TOPOLOGY)

    def run(self) -> tuple[int, str] | None:
        """Calls it; returns the code and the message of its error, and frees everything it made."""
        error = call(self.api, self.function, self.args)
        found = take_error(self.api, error) if is_error(error) else None
        if found is None and self.function == "TopologyDescription_Create":
            destroy_handle(self.api, "TopologyDescription", "topology", self.args.topology)
        return found

    def close(self) -> None:
        """Frees the error that the call used."""
        if self.error != ffi.NULL:
            take_error(self.api, self.error)


def _same_as_usual(subject: PluginSubject, name: str, one: _Call) -> None:
    """Makes a call, and expects the same outcome as for a host of the library's version."""
    usual = _Call(subject, name)
    expected, found = usual.run(), one.run()
    usual.close()
    if (found is None) != (expected is None) or (found and expected and found[0] != expected[0]):
        raise Mismatch(f"{_show(expected)}, as usual", _show(found))


def _show(outcome: tuple[int, str] | None) -> str:
    return f"code {outcome[0]}: {outcome[1].partition(chr(10))[0]}" if outcome else "no error"


def _takes_larger(subject: PluginSubject, name: str) -> None:
    one = _Call(subject, name, _TAIL)
    require_no_longer_structs(one.api)
    _same_as_usual(subject, name, one)
    one.close()


def _takes_smaller(subject: PluginSubject, name: str) -> None:
    one = _Call(subject, name, _TAIL)
    end = ffi.offsetof(f"struct PJRT_{one.function}_Args", LAST_OUTPUT[name])
    one.args.struct_size = end
    poison_from(one.args, end)
    error = call(one.api, one.function, one.args)
    if is_error(error):
        take_error(one.api, error)
    one.close()


def _takes_unknown_extension(subject: PluginSubject, name: str) -> None:
    one = _Call(subject, name)
    node = ffi.new("PJRT_Extension_Base*")
    node.struct_size, node.type = ffi.sizeof("PJRT_Extension_Base"), _UNKNOWN_EXTENSION
    one.args.extension_start = node
    _same_as_usual(subject, name, one)
    one.close()


for _name, _function in FUNCTIONS.items():
    CHAPTER.add(
        f"larger.{_name}",
        f"PJRT_{_function} takes a struct that is longer than known, and leaves its tail alone.",
        partial(_takes_larger, name=_name),
        refusable=_name.startswith("error_"),
        why="a newer host, whose structs are longer, cannot use it",
    )
    CHAPTER.add(
        f"extension.{_name}",
        f"PJRT_{_function} ignores an extension of its arguments that it does not know.",
        partial(_takes_unknown_extension, name=_name),
        rests_on="pjrt_c_api.h: extension_start",
        refusable=_name.startswith("error_"),
        why="a newer host, which adds extensions, cannot use it",
    )
for _name in LAST_OUTPUT:
    CHAPTER.add(
        f"smaller.{_name}",
        f"PJRT_{FUNCTIONS[_name]} writes nothing behind a struct that is shorter than known.",
        partial(_takes_smaller, name=_name),
        refusable=_name.startswith("error_"),
        why="an older host, whose structs are shorter, has its own memory overwritten",
    )


@CHAPTER.check("outputs", why="a host that reuses a struct reads what the last call left")
def outputs(subject: PluginSubject) -> None:
    """The results of a function do not depend on the previous values of their fields."""
    found = []
    for poisoned in (False, True):
        one = _Call(subject, "attributes")
        if poisoned:
            poison_from(one.args, ffi.offsetof("struct PJRT_Plugin_Attributes_Args", "attributes"))
        one.run()
        found.append((int(ffi.cast("uintptr_t", one.args.attributes)), one.args.num_attributes))
    expect_equal(found[1], found[0], "the address and number of attributes")


@CHAPTER.check(
    "name.empty",
    rests_on="pjrt_c_api.h: PJRT_TopologyDescription_Create",
    why="a host that asks for the default topology crashes",
)
def empty_name(subject: PluginSubject) -> None:
    """An empty name, at an address or at NULL, leads to an answer or an error."""
    for pointer in (ffi.from_buffer(b""), ffi.NULL):
        one = _Call(subject, "topology")
        one.args.topology_name, one.args.topology_name_size = pointer, 0
        one.run()


@CHAPTER.check(
    "name.bounded",
    rests_on="pjrt_c_api.h: strings are a pointer and a size",
    why="a host whose strings do not end with NUL crashes it, or is answered about another name",
)
def bounded_name(subject: PluginSubject) -> None:
    """A name is read for its stated size: it need not end with NUL."""
    name = Guarded(_NO_TOPOLOGY)
    one = _Call(subject, "topology")
    one.args.topology_name, one.args.topology_name_size = name.pointer, name.size
    _same_as_usual(subject, "topology", one)


@CHAPTER.check(
    "options.bounded",
    rests_on="pjrt_c_api.h: PJRT_NamedValue",
    why="a host whose strings do not end with NUL crashes it",
)
def bounded_options(subject: PluginSubject) -> None:
    """The name and the text of a create option are read for their stated sizes."""
    name, value = Guarded(b"plugrt_no_such_option"), Guarded(b"nothing")
    option = ffi.new("PJRT_NamedValue*")
    option.struct_size = ffi.sizeof("PJRT_NamedValue")
    option.name, option.name_size = name.pointer, name.size
    option.string_value, option.value_size = value.pointer, value.size
    one = _Call(subject, "topology")
    one.args.create_options, one.args.num_options = option, 1
    one.run()


@CHAPTER.check("attributes.values", why="hosts read a version from bytes that are not its own")
def attribute_values(subject: PluginSubject) -> None:
    """Attributes have UTF-8 names and values of PJRT's types, with the stated sizes."""
    one = _Call(subject, "attributes")
    one.run()
    for i in range(one.args.num_attributes):
        check_named_value(one.args.attributes[i])


_STRING, _INT64_LIST, _KINDS = 0, 2, 5


def check_named_value(value: Any) -> None:
    """Raises `Mismatch` unless a ``PJRT_NamedValue`` has a name, and a value of its size."""
    name = _bytes(value.name, value.name_size).decode("utf-8", "replace")
    expect(name and "\N{REPLACEMENT CHARACTER}" not in name and "\0" not in name, "a name", name)
    expect(0 <= value.type < _KINDS, f"{name}: a type from 0 to {_KINDS - 1}", value.type)
    if value.type == _STRING:
        held = _bytes(value.string_value, value.value_size)
        expect(b"\0" not in held, f"{name}: a text without NUL", held)
    elif value.type != _INT64_LIST:
        expect_equal(value.value_size, 1, f"{name}: the size of a single value")


def _bytes(pointer: Any, size: int) -> bytes:
    from plugrt.capi.abi.c_values import data

    return data(pointer, size)
