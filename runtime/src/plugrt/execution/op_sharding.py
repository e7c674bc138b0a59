"""Tilings as ``xla.OpSharding`` messages, in which compilers say how they divided a program.

The message and its field numbers are those of ``xla/xla_data.proto``.
"""

from __future__ import annotations

import math

import numpy as np

from plugrt.errors import InvalidReply, ShapeError, Unimplemented
from plugrt.execution.tiling import Tiling, whole
from plugrt.protobuf import Content, fields, integer, integers, message, varint

_TYPE, _DIMENSIONS, _DEVICES, _COPIES_LAST, _LAST_DIMENSIONS = 1, 3, 4, 6, 8
_IOTA_SHAPE, _IOTA_ORDER = 9, 10
_REPLICATED, _OTHER = 0, 3
_NAMES = {1: "maximal", 4: "manual", 5: "unknown", 6: "unreduced"}


def read_op_sharding(content: Content, ndim: int, devices: int) -> Tiling:
    """Returns how an array of ``ndim`` dimensions is divided over so many devices.

    Raises `Unimplemented` for kinds in which devices do not have equal parts, `ShapeError` for a
    message about another number of dimensions, and `InvalidReply` for one of other devices.
    """
    try:
        values = {number: value for number, value in fields(content) if isinstance(value, int)}
        kind = values.get(_TYPE, _REPLICATED)
        sizes = integers(content, _DIMENSIONS)
        listed = integers(content, _DEVICES)
        shape, order = integers(content, _IOTA_SHAPE), integers(content, _IOTA_ORDER)
        last = integers(content, _LAST_DIMENSIONS)
    except ValueError as error:
        raise InvalidReply(f"a sharding is no xla.OpSharding: {error}") from error
    if kind == _REPLICATED:
        return whole(ndim, devices)
    if kind != _OTHER or any(last):
        name = _NAMES.get(kind, f"of the kind {kind}") if kind != _OTHER else "in part manual"
        raise Unimplemented(f"a sharding that is {name} is not read; only equal parts are")
    order = order or [*range(len(shape))]
    rank = len(sizes) - (1 if values.get(_COPIES_LAST) else len(last))
    if rank != ndim:
        raise ShapeError(f"a sharding of {rank} dimensions divides no array of {ndim}")
    if math.prod(sizes) != devices or sorted(order) != [*range(len(shape))]:
        raise InvalidReply(f"a sharding into {sizes} parts is for other than {devices} devices")
    if not listed and math.prod(shape) == devices:
        listed = np.arange(devices).reshape(shape).transpose(order).ravel().tolist()
    if sorted(listed) != [*range(devices)]:
        raise InvalidReply(f"a sharding names the devices {listed}; there are {devices}")
    copies = math.prod(sizes[ndim:])
    tiles = [0] * devices
    for position, device in enumerate(listed):
        tiles[device] = position // copies
    return Tiling(tuple(sizes[:ndim]), tuple(tiles))


def write_op_sharding(tiling: Tiling) -> bytes:
    """Returns the message of a tiling."""
    if tiling.is_replicated:
        return b""
    sizes = [*tiling.parts, tiling.copies] if tiling.copies > 1 else tiling.parts
    order = np.argsort(tiling.tiles, kind="stable").tolist()
    return b"".join(
        (
            integer(_TYPE, _OTHER),
            message(_DIMENSIONS, b"".join(map(varint, sizes))),
            message(_DEVICES, b"".join(map(varint, order))),
            integer(_COPIES_LAST, 1) if tiling.copies > 1 else b"",
        )
    )
