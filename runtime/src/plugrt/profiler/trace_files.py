"""Trace files: an ``XSpace`` for xprof and TensorBoard, and Chrome's trace events.

Field numbers are from ``tsl/profiler/protobuf/xplane.proto``.
"""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from plugrt.wire.protobuf import Content, fields, integer, integers, message, messages

Event = dict[str, object]
_PICO_IN_MICRO = 10**6


def encode_trace_json(space: bytes) -> bytes:
    """Returns the events of all planes as JSON, compressed with gzip.

    A plane is a process, a line is a thread. Times are microseconds since the first line began.
    Raises `ValueError` for bytes that are not an ``XSpace``.
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
    for place, line in enumerate(lines, 1):  # lines have 64-bit ids, Perfetto reads 32 bits
        thread = {"pid": number, "tid": place}
        yield _title("thread_name", _string(line, 11) or _string(line, 2), **thread)
        begin = (_first(line, 3) - epoch) * 1000
        for content in messages(line, 4):
            yield {"ph": "X", **thread, **_event(content, begin, events, details)}


def _title(kind: str, name: str, **place: int) -> Event:
    return {"ph": "M", "name": kind, "args": {"name": name}, **place}


def _event(content: Content, begin: int, events: dict[int, str], details: dict[int, str]) -> Event:
    """Returns one event; ``begin`` is the start of its line, in picoseconds."""
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
    """Returns the names in a map from ids to metadata: the display name if there is one."""
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


PLANE = "/device:CUSTOM:plugrt"
"""xprof shows the plane ``/host:CPU``, which the backend writes, and planes whose name begins with
``/device:``. It silently ignores others.
"""
_PICO = 10**12


@dataclass(frozen=True, slots=True)
class HostEvent:
    """An event of one thread; ``begin`` is in seconds since the trace began."""

    name: str
    thread: int
    begin: float
    seconds: float
    details: dict[str, str | int | float] = field(default_factory=dict)


_EPOCH_NANOSECONDS = 10**17
"""Larger times are since 1970, smaller ones since the recording began. It is three years after
1970.
"""


def has_unix_times(space: bytes) -> bool:
    """Whether a space has times since 1970, as PJRT libraries write; jaxlib's are since the trace
    began.

    False for a space without lines, and for bytes that are not an ``XSpace``.
    """
    try:
        begins = [
            begin
            for plane in messages(space, 1)
            for line in messages(plane, 3)
            for begin in integers(line, 3)
        ]
    except ValueError:
        return False
    return max(begins, default=0) > _EPOCH_NANOSECONDS


def encode_xspace(events: Sequence[HostEvent], threads: dict[int, str], epoch: float) -> bytes:
    """Returns a space of one plane with a line for each thread.

    ``epoch`` is the start of the trace in seconds since 1970, or 0.0 to merge with spaces whose
    times are since the trace began. Concatenating the bytes of spaces merges them.
    """
    names = list(dict.fromkeys(event.name for event in events))
    keys = list(dict.fromkeys(key for event in events for key in event.details))
    lines = [
        _line(thread, title, [e for e in events if e.thread == thread], names, keys, epoch)
        for thread, title in threads.items()
    ]
    plane = b"".join(
        (
            _text(2, PLANE),
            *(message(3, line) for line in lines),
            *(_entry(4, number, name) for number, name in enumerate(names, 1)),
            *(_entry(5, number, key) for number, key in enumerate(keys, 1)),
        )
    )
    return message(1, plane)


def _line(
    thread: int,
    title: str,
    events: Sequence[HostEvent],
    names: Sequence[str],
    keys: Sequence[str],
    epoch: float,
) -> bytes:
    head = integer(1, thread) + _text(2, title) + integer(3, int(epoch * 10**9))
    return head + b"".join(message(4, _xspace_event(event, names, keys)) for event in events)


def _xspace_event(event: HostEvent, names: Sequence[str], keys: Sequence[str]) -> bytes:
    where = integer(1, names.index(event.name) + 1) + integer(2, int(event.begin * _PICO))
    stats = [
        message(4, integer(1, keys.index(key) + 1) + _text(5, str(value)))
        for key, value in event.details.items()
    ]
    return where + integer(3, int(event.seconds * _PICO)) + b"".join(stats)


def _entry(number: int, key: int, name: str) -> bytes:
    """Returns an entry of a map from ids to metadata, with its id and name."""
    return message(number, integer(1, key) + message(2, integer(1, key) + _text(2, name)))


def _text(number: int, text: str) -> bytes:
    return message(number, text.encode())
