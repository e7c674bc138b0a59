"""Writes ``xla.OpSharding``, the message in which compilers say how they divided an array.

The message and its field numbers are those of ``xla/xla_data.proto``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from plugrt.wire.protobuf import integer, message, varint

TYPE, DIMENSIONS, DEVICES, COPIES_LAST, LAST_DIMENSIONS = 1, 3, 4, 6, 8
IOTA_SHAPE, IOTA_ORDER = 9, 10

REPLICATED, OTHER = 0, 3
"""Values of ``TYPE``: whole on each device, and divided into tiles."""

WHOLE = b""
"""The message of an array that each device has whole."""


def write_tiles(parts: Sequence[int], devices: Sequence[int]) -> bytes:
    """Returns the message of an array in so many equal parts along each dimension.

    ``devices`` has the number of the device of each part in row-major order; those that have the
    same part are next to each other.
    """
    count = math.prod(parts)
    if count == 1:
        return WHOLE
    copies = len(devices) // count
    sizes = [*parts, copies] if copies > 1 else parts
    return b"".join(
        (
            integer(TYPE, OTHER),
            message(DIMENSIONS, b"".join(map(varint, sizes))),
            message(DEVICES, b"".join(map(varint, devices))),
            integer(COPIES_LAST, 1) if copies > 1 else b"",
        )
    )
