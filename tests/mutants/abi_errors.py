"""Mutants of a library's errors: see `mutants.tables`."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any

from mutants.tables import TableFaults, keep, replace_function
from plugrt.capi.abi._abi import ffi


def _read_without_look(sound: Any) -> Callable[[Any], Any]:
    def destroy(args: Any) -> None:
        if args.error == ffi.NULL:
            ctypes.string_at(8)
        sound(args)

    return destroy


def _foreign_code(sound: Any) -> Callable[[Any], Any]:
    def code(args: Any) -> Any:
        failed = sound(args)
        args.code = 77
        return failed

    return code


def _share_error(sound: Any) -> Callable[[Any], Any]:
    shared: list[Any] = []

    def create(args: Any) -> Any:
        if not shared:
            shared.append(sound(args))
        return shared[0]

    return create


def _move_message(sound: Any) -> Callable[[Any], Any]:
    def message(args: Any) -> None:
        sound(args)
        args.message = keep(ffi.new("char[]", ffi.unpack(args.message, args.message_size)))

    return message


def _repeat_payloads(sound: Any) -> Callable[[Any], Any]:
    """Visits one more payload in each call."""
    visits: list[None] = []

    def for_each(args: Any) -> Any:
        visits.append(None)
        for _ in visits:
            args.visitor(ffi.from_buffer(b"key"), 3, ffi.from_buffer(b"value"), 5, args.user_arg)
        return sound(args)

    return for_each


MUTANTS: Mapping[str, TableFaults] = {
    "abi.destroy_null": replace_function("Error_Destroy", _read_without_look),
    "abi.errors.several": replace_function("TopologyDescription_Create", _share_error),
    "abi.errors.message": replace_function("Error_Message", _move_message),
    "abi.errors.payloads": replace_function("Error_ForEachPayload", _repeat_payloads),
    "abi.errors": replace_function("Error_GetCode", _foreign_code),
}
