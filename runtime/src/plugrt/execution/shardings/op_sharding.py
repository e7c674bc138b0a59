"""Converts tilings from and to ``xla.OpSharding``, the message of compilers for shardings."""

from __future__ import annotations

import math

import numpy as np

from plugrt.errors import InvalidReply, ShapeError, Unimplemented
from plugrt.execution.shardings.tiling import Tiling, whole, with_terms
from plugrt.wire.hlo_proto import (
    COPIES_LAST,
    DEVICES,
    DIMENSIONS,
    IOTA_ORDER,
    IOTA_SHAPE,
    LAST_DIMENSIONS,
    OTHER,
    REPLICATED,
    TYPE,
    UNREDUCED,
    write_tiles,
)
from plugrt.wire.protobuf import Content, fields, integers

_KINDS = {REPLICATED: "replicated", 1: "maximal", 4: "manual", 5: "unknown", 6: "unreduced"}


def read_op_sharding(content: Content, ndim: int, devices: int) -> Tiling:
    """Returns the tiling of an array with ``ndim`` dimensions over so many devices.

    Raises `Unimplemented` for kinds with unequal parts, `ShapeError` for a message about another
    number of dimensions, and `InvalidReply` for a message about other devices.
    """
    try:
        values = {number: value for number, value in fields(content) if isinstance(value, int)}
        kind = values.get(TYPE, REPLICATED)
        sizes = integers(content, DIMENSIONS)
        listed = integers(content, DEVICES)
        shape, order = integers(content, IOTA_SHAPE), integers(content, IOTA_ORDER)
        last = integers(content, LAST_DIMENSIONS)
    except ValueError as error:
        raise InvalidReply(f"a sharding is not an xla.OpSharding: {error}") from error
    if kind == REPLICATED:
        return whole(ndim, devices)
    if kind == UNREDUCED:
        return with_terms((1,) * ndim, (0,) * devices, range(devices))
    if kind != OTHER or {*last} - {REPLICATED, UNREDUCED}:
        name = _KINDS.get(kind, f"of the kind {kind}") if kind != OTHER else "in part manual"
        raise Unimplemented(
            f"shardings that are {name} are not supported; those into equal parts are"
        )
    order = order or [*range(len(shape))]
    rank = len(sizes) - (1 if values.get(COPIES_LAST) else len(last))
    if rank != ndim:
        raise ShapeError(f"a sharding of {rank} dimensions cannot divide an array of {ndim}")
    if math.prod(sizes) != devices or sorted(order) != [*range(len(shape))]:
        raise InvalidReply(f"a sharding into {sizes} parts does not fit {devices} devices")
    if not listed and math.prod(shape) == devices:
        listed = np.arange(devices).reshape(shape).transpose(order).ravel().tolist()
    if sorted(listed) != [*range(devices)]:
        raise InvalidReply(f"a sharding names the devices {listed}; there are {devices}")
    copies = math.prod(sizes[ndim:])
    tiles, terms = [0] * devices, [0] * devices
    summed = [kind == UNREDUCED for kind in last] or [False] * len(sizes[ndim:])
    for position, device in enumerate(listed):
        tiles[device] = position // copies
        for size, is_term in zip(reversed(sizes[ndim:]), reversed(summed), strict=True):
            position, place = divmod(position, size)
            if is_term:
                terms[device] = terms[device] * size + place
    return with_terms(tuple(sizes[:ndim]), tuple(tiles), terms)


def is_stated_whole(content: Content) -> bool:
    """Whether a message means a replicated array; raises `InvalidReply` for a malformed one."""
    try:
        values = {number: value for number, value in fields(content) if isinstance(value, int)}
        sizes, last = integers(content, DIMENSIONS), integers(content, LAST_DIMENSIONS)
    except ValueError as error:
        raise InvalidReply(f"a sharding is not an xla.OpSharding: {error}") from error
    kind = values.get(TYPE, REPLICATED)
    rank = len(sizes) - (1 if values.get(COPIES_LAST) else len(last))
    return kind == REPLICATED or (
        kind == OTHER and math.prod(sizes[:rank]) == 1 and UNREDUCED not in last
    )


def show_op_sharding(content: bytes) -> str:
    """Returns a message in the syntax of HLO's text, such as ``{devices=[2,2]<=[4]}``."""
    try:
        values = {number: value for number, value in fields(content) if isinstance(value, int)}
        sizes, listed, shape, order = (
            ",".join(map(str, integers(content, number)))
            for number in (DIMENSIONS, DEVICES, IOTA_SHAPE, IOTA_ORDER)
        )
        last = [_KINDS.get(kind, str(kind)) for kind in integers(content, LAST_DIMENSIONS)]
    except ValueError:
        return repr(content)
    kind = values.get(TYPE, REPLICATED)
    if kind != OTHER:
        device = f" device={listed}" if listed else ""
        return f"{{{_KINDS.get(kind, kind)}{device}}}"
    turned = f"T({order})" if "," in order else ""
    text = f"devices=[{sizes}]{listed or f'<=[{shape}]{turned}'}"
    text += " last_tile_dim_replicate" if values.get(COPIES_LAST) else ""
    text += f" last_tile_dims={{{', '.join(last)}}}" if last else ""
    return f"{{{text}}}"


def write_op_sharding(tiling: Tiling) -> bytes:
    """Returns the message of a tiling."""
    return write_tiles(tiling.parts, tiling.order, tiling.term_count)
