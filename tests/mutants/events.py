"""Mutants of a library's events: see `mutants.tables`."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

from mutants.arguments import Sound
from mutants.tables import TableFaults, replace_function, replace_functions
from plugrt.capi.abi._abi import ffi
from plugrt_sdk.conformance.function_table import is_error


def _always_ready(sound: Sound) -> Sound:
    def is_ready(args: Any) -> Any:
        error = sound(args)
        args.is_ready = True
        return error

    return is_ready


def _set_to_another(sound: Sound) -> Sound:
    def set_event(args: Any) -> Any:
        args.error_code = 2
        return sound(args)

    return set_event


def _share_error(sound: Sound) -> Sound:
    """Returns the same error of an event in each call."""
    shared: dict[Any, Any] = {}

    def get_error(args: Any) -> Any:
        if args.event not in shared:
            shared[args.event] = sound(args)
        return shared[args.event]

    return get_error


def _lends_errors() -> TableFaults:
    """Returns a mutant whose events own the texts of their errors."""
    lent: dict[Any, Any] = {}
    gone: set[Any] = set()

    def lend(sound: Sound) -> Sound:
        def get_error(args: Any) -> Any:
            lent[args.event] = sound(args)
            return lent[args.event]

        return get_error

    def destroy(sound: Sound) -> Sound:
        def destroy_event(args: Any) -> Any:
            gone.add(lent.pop(args.event, None))
            return sound(args)

        return destroy_event

    def read(sound: Sound) -> Sound:
        def message(args: Any) -> None:
            sound(args)
            args.message_size = 0 if args.error in gone else args.message_size

        return message

    return replace_functions({"Event_Error": lend, "Event_Destroy": destroy, "Error_Message": read})


def _call_twice(sound: Sound) -> Sound:
    def on_ready(args: Any) -> Any:
        error = sound(args)
        if not is_error(error):
            sound(args)
        return error

    return on_ready


def _call_at_once(sound: Sound) -> Sound:
    """Calls back at once, without an error, whether the event is set or not."""

    def on_ready(args: Any) -> Any:
        args.callback(ffi.NULL, args.user_arg)
        return ffi.NULL

    return on_ready


def _destroy_without_look(sound: Sound) -> Sound:
    def destroy(args: Any) -> Any:
        if args.event == ffi.NULL:
            ctypes.string_at(8)
        return sound(args)

    return destroy


MUTANTS: Mapping[str, TableFaults] = {
    "events.pending": replace_function("Event_IsReady", _always_ready),
    "events.set": replace_function("Event_Set", _set_to_another),
    "events.errors.independent": replace_function("Event_Error", _share_error),
    "events.errors.outlive": _lends_errors(),
    "events.callbacks.once": replace_function("Event_OnReady", _call_twice),
    "events.callbacks.early": replace_function("Event_OnReady", _call_at_once),
    "events.destroy_null": replace_function("Event_Destroy", _destroy_without_look),
}
