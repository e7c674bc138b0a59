"""Mutants of the time of a host's changes to the source of a put."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mutants.changes import Sound
from mutants.tables import TableFaults, replace_function, sound_table
from plugrt.interface import HostBufferSemantics
from plugrt_sdk.conformance.function_table import new_args


def _done_too_early(semantics: HostBufferSemantics) -> TableFaults:
    """Returns a mutant that uses the host's memory for ever, and states that it has ended."""

    def put(sound: Sound) -> Sound:
        def call(args: Any) -> Any:
            if args.host_buffer_semantics != semantics:
                return sound(args)
            args.host_buffer_semantics = int(HostBufferSemantics.IMMUTABLE_ZERO_COPY)
            error = sound(args)
            ready, _kept = new_args("Buffer_ReadyEvent")
            ready.buffer = args.buffer
            sound_table().Buffer_ReadyEvent(ready)
            args.done_with_host_buffer = ready.event
            return error

        return call

    return replace_function("Client_BufferFromHostBuffer", put)


MUTANTS: Mapping[str, TableFaults] = {
    f"table_puts.{each.name.lower()}": _done_too_early(each) for each in HostBufferSemantics
}
