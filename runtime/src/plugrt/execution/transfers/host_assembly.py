"""`HostAssembly`: assembles parts of an array in main memory, for devices that use it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from plugrt.base.aligned_arrays import allocate_aligned
from plugrt.execution.shardings.index_boxes import Box, box_shape, relative_box
from plugrt.interface import Buffer, Client, Device, HostBufferSemantics

MAX_BYTES = 1 << 20
"""The largest array, in bytes: for larger ones, programs on the devices copy faster in parallel."""

_ALIAS = HostBufferSemantics.IMMUTABLE_ZERO_COPY

Pieces = Sequence[tuple[int, Box, Box]]
"""For each piece: the number of its buffer, that buffer's box, and the piece's box."""

_Located = tuple[int, tuple[int, ...], tuple[slice, ...], tuple[slice, ...]]
"""The number of a buffer, its shape, and the position of a piece in it and in the part."""


def is_assembled_on_host(client: Client, nbytes: int) -> bool:
    """Whether parts of arrays of this size are assembled in main memory.

    They are if reading and putting a buffer are no copies, because the devices use the host's
    memory. One copy by NumPy then costs as much as launching a program, and needs no compilation.
    It waits for the parts, though.
    """
    can = client.capabilities
    return can.zero_copy_get and can.zero_copy_put and nbytes <= MAX_BYTES


class HostAssembly:
    """Makes parts of one shape and dtype from pieces in buffers."""

    __slots__ = ("_devices", "_dtype", "_parts", "_shape")

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: np.dtype[np.generic],
        parts: Sequence[tuple[Device, Box, Pieces]],
    ) -> None:
        """``parts`` has for each part its device, its box, and its pieces.

        Parts with the same object for their pieces are assembled once, and copied.
        """
        self._shape, self._dtype = shape, dtype
        self._devices = [device for device, _, _ in parts]
        first: dict[int, int] = {}
        self._parts = [
            (first.setdefault(id(pieces), i), box_shape(box), _locate(pieces, box))
            if id(pieces) not in first
            else (first[id(pieces)], (), [])
            for i, (_, box, pieces) in enumerate(parts)
        ]

    def __call__(self, buffers: Sequence[Buffer]) -> list[Buffer]:
        """Returns the parts as buffers over new memory. Waits for ``buffers``."""
        used = {number for _, _, pieces in self._parts for number, _, _, _ in pieces}
        views = {number: buffers[number].to_host() for number in used}
        made: list[npt.NDArray[np.generic]] = []
        for i, (like, shape, pieces) in enumerate(self._parts):
            if like != i:
                host = allocate_aligned(self._shape, self._dtype)
                host[...] = made[like]
                made.append(host)
                continue
            host = allocate_aligned(shape, self._dtype)
            for number, held, source, target in pieces:
                host[target] = views[number].reshape(held)[source]
            made.append(host.reshape(self._shape))
        client = self._devices[0].client
        return [*client.buffers_from_host(made, self._devices, None, _ALIAS)]


def _locate(pieces: Pieces, box: Box) -> list[_Located]:
    return [
        (number, box_shape(held), _index(piece, held), _index(piece, box))
        for number, held, piece in pieces
    ]


def _index(piece: Box, whole: Box) -> tuple[slice, ...]:
    return tuple(slice(*bounds) for bounds in relative_box(piece, whole))
