"""Mutants of libraries whose events call back twice, never, or too early."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mutants.changes import Sound, every, refusal, then
from mutants.tables import TableFaults, replace_function, replace_functions
from plugrt.capi.abi._abi import ffi


def _call_twice(sound: Sound) -> Sound:
    """Calls back now, and again when the event is ready."""

    def on_ready(args: Any) -> Any:
        args.callback(ffi.NULL, args.user_arg)
        return sound(args)

    return on_ready


def _never_ready(args: Any) -> None:
    args.is_ready = False


def _call_before_the_data() -> TableFaults:
    """Returns a mutant that writes a read's bytes after the first callbacks."""
    late: list[tuple[Any, bytes]] = []

    def read(args: Any) -> None:
        if args.dst != ffi.NULL and args.event != ffi.NULL:
            room = ffi.buffer(args.dst, args.dst_size)
            late.append((room, bytes(room)))
            room[:] = bytes(len(room))

    def on_ready(sound: Sound) -> Sound:
        def call(args: Any) -> Any:
            error = sound(args)
            while late:
                room, content = late.pop()
                room[:] = content
            return error

        return call

    return replace_functions({"Buffer_ToHostBuffer": then(read), "Event_OnReady": on_ready})


def _call_again(args: Any) -> None:
    args.callback(ffi.NULL, args.user_arg)


MUTANTS: Mapping[str, TableFaults] = {
    "table_events.put": replace_function("Event_OnReady", _call_twice),
    "table_events.launch": replace_function("Event_IsReady", then(_never_ready)),
    "table_events.read": _call_before_the_data(),
    "table_events.often": replace_function("Event_OnReady", then(every(97, _call_again))),
    "table_events.no_error": replace_function("Event_Error", lambda sound: lambda args: refusal()),
}
