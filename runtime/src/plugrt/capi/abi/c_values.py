"""Strings, lists and named values across the C boundary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.process_map import read_memory
from plugrt.capi.abi.structs import struct_type
from plugrt.errors import InvalidArgument, InvalidReply
from plugrt.interface import OptionValue

if TYPE_CHECKING:
    from plugrt.capi.abi._abi import CData

_STRING, _INT64, _INT64_LIST, _FLOAT, _BOOL = range(5)
_INT64_LIMIT = 1 << 63


def data(pointer: CData, size: int) -> bytes:
    """Returns ``size`` bytes at a pointer, none for NULL; `InvalidReply` for invalid memory."""
    if not size or pointer == ffi.NULL:
        return b""
    return read_memory(int(ffi.cast("uintptr_t", pointer)), size)


def text(pointer: CData, size: int) -> str:
    """Returns a string that need not end with NUL; bytes that are not UTF-8 are escaped."""
    return data(pointer, size).decode("utf-8", "backslashreplace")


def chars(content: str | bytes) -> tuple[CData, int]:
    """Returns (``char*``, size) of a string, valid as long as the pointer object lives."""
    try:
        encoded = content.encode() if isinstance(content, str) else content
    except UnicodeEncodeError as error:
        raise InvalidArgument(
            f"{content!r} cannot be passed to a library as text: {error}"
        ) from None
    return ffi.from_buffer(encoded), len(encoded)


def unpack(pointer: CData, count: int) -> list[Any]:
    """Returns ``count`` elements at a pointer; nothing for NULL."""
    if not count or pointer == ffi.NULL:
        return []
    data(pointer, count * ffi.sizeof(ffi.typeof(pointer).item))  # raises for invalid memory
    return list(ffi.unpack(pointer, count))


def allocate(size: int) -> CData:
    """Returns a zeroed ``char[size]``; `InvalidReply` if there is not enough memory."""
    try:
        return ffi.new("char[]", max(size, 1))
    except (OverflowError, MemoryError):
        raise InvalidReply(f"{size} bytes are more than there is memory for") from None


def read_named_values(pointer: CData, count: int) -> dict[str, OptionValue]:
    """Returns an array of ``PJRT_NamedValue`` as a dict, without values of unknown types."""
    found: dict[str, OptionValue] = {}
    for item in unpack(pointer, count):
        name = text(item.name, item.name_size)
        if item.type == _STRING:
            found[name] = text(item.string_value, item.value_size)
        elif item.type == _INT64:
            found[name] = item.int64_value
        elif item.type == _INT64_LIST:
            found[name] = unpack(item.int64_array_value, item.value_size)
        elif item.type == _FLOAT:
            found[name] = item.float_value
        elif item.type == _BOOL:
            found[name] = bool(item.bool_value)
    return found


def _integer(name: str, value: Any) -> int:
    number = int(value)
    if not -_INT64_LIMIT <= number < _INT64_LIMIT:
        raise InvalidArgument(f"the option {name!r} is {number}, which does not fit 64 bits")
    return number


def _fill(item: Any, name: str, value: object) -> object:
    """Fills a `PJRT_NamedValue`, whose ``name`` errors state; returns the object to keep alive."""
    if isinstance(value, bool | np.bool_):
        item.type, item.bool_value, item.value_size = _BOOL, bool(value), 1
        return None
    if isinstance(value, int | np.integer):
        item.type, item.int64_value, item.value_size = _INT64, _integer(name, value), 1
        return None
    if isinstance(value, float | np.floating):
        item.type, item.float_value, item.value_size = _FLOAT, float(value), 1
        return None
    if isinstance(value, str):
        keep, size = chars(value)
        item.type, item.string_value, item.value_size = _STRING, keep, size
        return keep
    if isinstance(value, list | tuple) and all(
        isinstance(v, int | np.integer) and not isinstance(v, bool) for v in value
    ):
        keep = ffi.new("int64_t[]", [_integer(name, v) for v in value])
        item.type, item.int64_array_value, item.value_size = _INT64_LIST, keep, len(value)
        return keep
    raise InvalidArgument(
        f"the option {name!r} is {value!r}; a PJRT option is a string, an integer, a list of "
        "integers, a float or a bool"
    )


def named_values(options: Mapping[str, object]) -> tuple[CData, int, list[CData]]:
    """Returns (``PJRT_NamedValue*``, count, objects to keep alive) of a mapping."""
    array = ffi.new("PJRT_NamedValue[]", len(options))
    keep: list[Any] = [array]
    for item, (name, value) in zip(array, options.items(), strict=True):
        _, item.struct_size = struct_type("PJRT_NamedValue")
        pointer, item.name_size = chars(name)
        item.name = pointer
        keep += [pointer, _fill(item, name, value)]
    return array, len(options), keep
