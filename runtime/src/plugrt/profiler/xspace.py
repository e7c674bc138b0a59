"""`encode_xspace`: events of this process as TensorBoard's and xprof's ``XSpace``.

Field numbers are those of ``tsl/profiler/protobuf/xplane.proto``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from plugrt.wire.protobuf import integer, integers, message, messages

PLANE = "/device:CUSTOM:plugrt"
"""xprof shows the planes ``/host:CPU``, which is the backend's, and those that begin with
``/device:``; others it leaves out without a word.
"""
_PICO = 10**12


@dataclass(frozen=True, slots=True)
class HostEvent:
    """What one thread did from ``begin`` on, in seconds since the trace began."""

    name: str
    thread: int
    begin: float
    seconds: float
    details: dict[str, str | int | float] = field(default_factory=dict)


_EPOCH_NANOSECONDS = 10**17
"""Times from here on are since 1970 (three years after it), and not since a recording began."""


def counts_from_1970(space: bytes) -> bool:
    """Whether a space has times since 1970, as PJRT libraries have; jaxlib's begin with the trace.

    False for a space without lines, and for what is no space.
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

    ``epoch`` is when the trace began, in seconds since 1970, or 0.0 beside spaces whose times begin
    with it. Spaces are merged by joining bytes.
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
    return head + b"".join(message(4, _event(event, names, keys)) for event in events)


def _event(event: HostEvent, names: Sequence[str], keys: Sequence[str]) -> bytes:
    where = integer(1, names.index(event.name) + 1) + integer(2, int(event.begin * _PICO))
    stats = [
        message(4, integer(1, keys.index(key) + 1) + _text(5, str(value)))
        for key, value in event.details.items()
    ]
    return where + integer(3, int(event.seconds * _PICO)) + b"".join(stats)


def _entry(number: int, key: int, name: str) -> bytes:
    """Returns an entry of a map from numbers to metadata, which have number and name too."""
    return message(number, integer(1, key) + message(2, integer(1, key) + _text(2, name)))


def _text(number: int, text: str) -> bytes:
    return message(number, text.encode())
