"""Level 1 of PJRT libraries: an object's answers stay valid while others are requested.

A library that returns all answers at one address is right in each call, and wrong for a host that
keeps the pointer, as the header allows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from plugrt.capi.abi._abi import ffi
from plugrt.errors import InvalidReply, describe
from plugrt_sdk.conformance.check import Chapter, Level, Needs
from plugrt_sdk.conformance.expect import Mismatch, expect, expect_equal, show
from plugrt_sdk.conformance.function_table import call, is_error, new_args, take_error
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.conformance.table_client import TableClient, text_at
from plugrt_sdk.testing import programs

CHAPTER = Chapter(
    "table_answers", Level.BUFFERS, "pjrt_c_api.h: the lifetime of what a function fills in",
    needs=Needs.LIBRARY_CLIENT,
)  # fmt: skip

_WHY_OTHER = "arrays and programs have the shapes, types and names of others"
_WHY_TEXT = "devices, memories and programs have the names of others"
_OTHER = """module @another_one {
  func.func public @main(%a: tensor<5x7xi32>) -> (tensor<5x7xi32>, tensor<i32>) {
    %0 = stablehlo.add %a, %a : tensor<5x7xi32>
    %1 = stablehlo.constant dense<3> : tensor<i32>
    return %0, %1 : tensor<5x7xi32>, tensor<i32>
  }
}"""


@dataclass(frozen=True, slots=True)
class _Answer:
    """The pointer that a function set, and the number of items there."""

    function: str
    pointer: Any
    count: int

    def read(self) -> bytes | list[int]:
        """Returns the present contents: a text, or numbers."""
        size = ffi.sizeof(ffi.typeof(self.pointer).item)
        held = text_at(ffi.cast("char*", self.pointer), self.count * size)
        return held if size == 1 else [int(n) for n in np.frombuffer(held, f"i{size}")]


@dataclass(frozen=True, slots=True)
class _Attributes:
    """The attributes of an object, from a function."""

    function: str
    pointer: Any
    count: int

    def read(self) -> list[tuple[bytes, bytes]]:
        """Returns the name and the value in memory of each attribute."""
        text_at(ffi.cast("char*", self.pointer), self.count * ffi.sizeof("PJRT_NamedValue"))
        return [_named_value(self.pointer[i]) for i in range(self.count)]


def _named_value(one: Any) -> tuple[bytes, bytes]:
    name = text_at(one.name, one.name_size)
    if one.type in _LISTS:
        pointer = ffi.cast("char*", getattr(one, _LISTS[one.type][0]))
        return name, text_at(pointer, one.value_size * _LISTS[one.type][1])
    return name, bytes(ffi.buffer(ffi.addressof(one, "int64_value"), 8))


_LISTS = {0: ("string_value", 1), 2: ("int64_array_value", 8)}
"""The types of values that are stored elsewhere, to the field and the size of an item."""


def _ask(host: TableClient, name: str, pointer: str, count: str, **given: Any) -> _Answer:
    args = host.call(name, **given)
    return _Answer(name, getattr(args, pointer), int(getattr(args, count)))


def _expect_to_stay(answers: Iterator[_Answer | _Attributes]) -> None:
    """Expects each answer to be the same after all were requested."""
    read = [(answer, answer.read()) for answer in answers]
    for answer, before in read:
        what = f"of PJRT_{answer.function}, after the others were asked,"
        try:
            now = answer.read()
        except InvalidReply as found:
            raise Mismatch(f"{what} what it gave, {show(before)}", describe(found)) from found
        expect_equal(now, before, what)


TEXTS = {
    "Client_PlatformName": "platform_name",
    "Client_PlatformVersion": "platform_version",
    "DeviceDescription_Kind": "device_kind",
    "DeviceDescription_DebugString": "debug_string",
    "DeviceDescription_ToString": "to_string",
    "Memory_Kind": "kind",
    "Memory_DebugString": "debug_string",
    "Memory_ToString": "to_string",
}
"""Functions that return a text, and the text's field."""


def _texts(client: TableClient) -> Iterator[_Answer]:
    """Requests each text of the client, of its devices and of its memories."""
    described = [
        client.call("Device_GetDescription", device=device).device_description
        for device in client.devices()
    ]
    objects = {
        "Client": ("client", [client.handle]),
        "DeviceDescription": ("device_description", described),
        "Memory": ("memory", client.memories()),
    }
    for name, field in TEXTS.items():
        argument, found = objects[name.partition("_")[0]]
        for each in found:
            yield _ask(client, name, field, f"{field}_size", **{argument: each})


@CHAPTER.check("texts", refusable=True, why=_WHY_TEXT)
def texts(subject: PluginSubject) -> None:
    """Texts of the client, its devices and memories stay valid while others are requested."""
    _expect_to_stay(_texts(TableClient.of(subject)))


@CHAPTER.check(
    "attributes", rests_on="pjrt_c_api.h: PJRT_DeviceDescription_Attributes",
    why="hosts read coordinates of a device from freed memory, or those of another",
)  # fmt: skip
def attributes(subject: PluginSubject) -> None:
    """A device's attributes stay valid while its own or another device's are requested."""
    client = TableClient.of(subject)
    name = "DeviceDescription_Attributes"

    def answers() -> Iterator[_Attributes]:
        for device in client.devices() * 2:
            found = client.call("Device_GetDescription", device=device).device_description
            args = client.call(name, device_description=found)
            yield _Attributes(name, args.attributes, int(args.num_attributes))

    _expect_to_stay(answers())


@CHAPTER.check("errors", rests_on="pjrt_c_api.h: PJRT_Error_Message", why=_WHY_TEXT)
def errors(subject: PluginSubject) -> None:
    """An error's message stays valid while another error's is requested."""
    client = TableClient.of(subject)
    name = "Client_LookupDevice"
    made = [
        call(client.api, name, client.args(name, client=client.handle, id=number))
        for number in (-1, 1 << 30)
    ]
    expect(all(map(is_error, made)), "an error for each device that is not there", made)

    def messages() -> Iterator[_Answer]:
        for error in made:
            args, _kept = new_args("Error_Message")
            args.error = error
            call(client.api, "Error_Message", args)
            yield _Answer("Error_Message", args.message, int(args.message_size))

    _expect_to_stay(messages())
    for error in made:
        take_error(client.api, error)


def _two_buffers(client: TableClient) -> list[Any]:
    return [client.put(np.ones(shape, np.float32)) for shape in ((2, 3), (5, 7, 1))]


@CHAPTER.check("buffers.dims", rests_on="pjrt_c_api.h: PJRT_Buffer_Dimensions", why=_WHY_OTHER)
def buffer_dims(subject: PluginSubject) -> None:
    """A buffer's dimensions stay valid while another buffer's are requested."""
    client = TableClient.of(subject)
    _expect_to_stay(
        _ask(client, "Buffer_Dimensions", "dims", "num_dims", buffer=buffer)
        for buffer in _two_buffers(client)
    )


@CHAPTER.check(
    "buffers.unpadded", refusable=True, why=_WHY_OTHER,
    rests_on="pjrt_c_api.h: PJRT_Buffer_UnpaddedDimensions",
)  # fmt: skip
def buffer_unpadded(subject: PluginSubject) -> None:
    """A buffer's unpadded dimensions stay valid while another buffer's are requested."""
    client = TableClient.of(subject)
    _expect_to_stay(
        _ask(client, "Buffer_UnpaddedDimensions", "unpadded_dims", "num_dims", buffer=buffer)
        for buffer in _two_buffers(client)
    )


def _two_programs(client: TableClient) -> list[Any]:
    """Returns two ``PJRT_Executable*`` whose results differ in number, type and dimensions."""
    return [client.compile(text.encode())[1] for text in (programs.ADD, _OTHER)]


def _executables_stay(subject: PluginSubject, name: str, pointer: str, count: str) -> None:
    client = TableClient.of(subject)
    _expect_to_stay(
        _ask(client, name, pointer, count, executable=executable)
        for executable in _two_programs(client)
    )


@CHAPTER.check("programs.types", level=Level.COMPUTES, why=_WHY_OTHER)
def program_types(subject: PluginSubject) -> None:
    """A program's result types stay valid while another program's are requested."""
    _executables_stay(subject, "Executable_OutputElementTypes", "output_types", "num_output_types")


@CHAPTER.check("programs.dims", level=Level.COMPUTES, why=_WHY_OTHER)
def program_dims(subject: PluginSubject) -> None:
    """A program's result dimensions stay valid while another program's are requested."""
    client = TableClient.of(subject)

    def dimensions() -> Iterator[_Answer]:
        for executable in _two_programs(client):
            args = client.call("Executable_OutputDimensions", executable=executable)
            sizes = _Answer("Executable_OutputDimensions", args.dim_sizes, int(args.num_outputs))
            yield sizes
            yield _Answer("Executable_OutputDimensions", args.dims, sum(sizes.read()))

    _expect_to_stay(dimensions())


@CHAPTER.check("programs.name", level=Level.COMPUTES, why=_WHY_TEXT)
def program_name(subject: PluginSubject) -> None:
    """A program's name stays valid while another program's is requested."""
    _executables_stay(subject, "Executable_Name", "executable_name", "executable_name_size")


@CHAPTER.check(
    "programs.fingerprint", level=Level.COMPUTES, refusable=True,
    why="a program is taken from the cache for another",
)  # fmt: skip
def program_fingerprint(subject: PluginSubject) -> None:
    """A program's fingerprint stays valid while another program's is requested."""
    name, field = "Executable_Fingerprint", "executable_fingerprint"
    _executables_stay(subject, name, field, f"{field}_size")
