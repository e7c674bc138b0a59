"""`encode_trace_json`: an ``XSpace`` in Chrome's trace event format, which Perfetto opens.

Field numbers are those of ``tsl/profiler/protobuf/xplane.proto``.
"""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Iterator
from typing import Any

from plugrt.wire.protobuf import Content, fields, integers, messages

Event = dict[str, Any]
_PICO_IN_MICRO = 10**6


def encode_trace_json(space: bytes) -> bytes:
    """Returns the events of all planes as JSON, packed with gzip.

    A plane is a process, a line a thread; times are microseconds since the first line began. Raises
    `ValueError` for what is no space.
    """
    planes = messages(space, 1)
    begins = [_first(line, 3) for plane in planes for line in messages(plane, 3)]
    epoch = min(begins, default=0)
    events = [e for number, plane in enumerate(planes, 1) for e in _plane(number, plane, epoch)]
    content = {"displayTimeUnit": "ns", "traceEvents": events}
    return gzip.compress(json.dumps(content, allow_nan=False).encode(), mtime=0)


def _plane(number: int, plane: Content, epoch: int) -> Iterator[Event]:
    if lines := messages(plane, 3):
        yield _title("process_name", _string(plane, 2), pid=number)
    events, details = _names(plane, 4), _names(plane, 5)
    for place, line in enumerate(lines, 1):  # lines have numbers of 64 bits, Perfetto reads 32
        thread = {"pid": number, "tid": place}
        yield _title("thread_name", _string(line, 11) or _string(line, 2), **thread)
        begin = (_first(line, 3) - epoch) * 1000
        for content in messages(line, 4):
            yield {"ph": "X", **thread, **_event(content, begin, events, details)}


def _title(kind: str, name: str, **place: int) -> Event:
    return {"ph": "M", "name": kind, "args": {"name": name}, **place}


def _event(content: Content, begin: int, events: dict[int, str], details: dict[int, str]) -> Event:
    """Returns one event; ``begin`` is when its line began, in picoseconds."""
    found = list(fields(content))
    numbers = {number: value for number, value in found if isinstance(value, int)}
    stats = [value for number, value in found if number == 4 and not isinstance(value, int)]
    kind = numbers.get(1, 0)
    return {
        "name": events.get(kind, str(kind)),
        "ts": (begin + numbers.get(2, 0)) / _PICO_IN_MICRO,
        "dur": numbers.get(3, 0) / _PICO_IN_MICRO,
        "args": dict(_detail(stat, details) for stat in stats),
    }


def _detail(content: Content, names: dict[int, str]) -> tuple[str, str | int | None]:
    """Returns the name and the value of an ``XStat``."""
    name = ""
    value: str | int | None = None
    for number, found in fields(content):
        match number, found:
            case 1, int():
                name = names.get(found, str(found))
            case 2, memoryview():
                value = str(struct.unpack("<d", found)[0])  # JSON has no NaN
            case 4, int():
                value = found - (1 << 64) if found >> 63 else found
            case 7, int():
                value = names.get(found, str(found))
            case 6, memoryview():
                value = f"{len(found)} bytes"
            case _, memoryview():
                value = bytes(found).decode(errors="replace")
            case _:
                value = found
    return name, value


def _names(plane: Content, number: int) -> dict[int, str]:
    """Returns the names in a map from numbers to metadata: their own, or those for display."""
    found = {}
    for entry in messages(plane, number):
        for metadata in messages(entry, 2):
            shown = _string(metadata, 4) if number == 4 else ""
            found[_first(entry, 1)] = shown or _string(metadata, 2)
    return found


def _first(content: Content, number: int) -> int:
    return next(iter(integers(content, number)), 0)


def _string(content: Content, number: int) -> str:
    return b"".join(messages(content, number)).decode(errors="replace")
