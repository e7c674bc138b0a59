"""`Tiling`: the number of parts of each dimension, and the part on each device."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plugrt.errors import ShapeError

Slices = tuple[slice, ...]
"""The position of a part in the whole array, as a NumPy index."""


@dataclass(frozen=True, slots=True)
class Tiling:
    """The division of arrays with a given number of dimensions over a list of devices.

    ``parts`` has the number of parts in each dimension; parts are numbered in row-major order, and
    ``tiles`` has the number of each device's part. If a part is the sum of terms on several
    devices, ``terms`` has the number of each device's term (`with_terms`). Shardings over the same
    devices with equal tilings are equivalent.
    """

    parts: tuple[int, ...]
    tiles: tuple[int, ...]
    terms: tuple[int, ...] = ()

    @property
    def is_replicated(self) -> bool:
        """Whether each device has the whole array."""
        return math.prod(self.parts) == 1 and not self.terms

    @property
    def term_count(self) -> int:
        """The number of terms whose sum is a part."""
        return max(self.terms, default=0) + 1

    @property
    def copies(self) -> int:
        """The number of devices that have a part, or a term of it."""
        return len(self.tiles) // (math.prod(self.parts) * self.term_count)

    @property
    def order(self) -> list[int]:
        """The devices' numbers, sorted by part and then by term."""
        terms = self.terms or self.tiles
        return sorted(range(len(self.tiles)), key=lambda i: (self.tiles[i], terms[i]))

    def shard_shape(self, shape: Sequence[int], what: object) -> tuple[int, ...]:
        """Returns the shape of a part.

        Raises `ShapeError`, which names the sharding ``what``, if the shape does not divide evenly.
        """
        if len(shape) != len(self.parts):
            raise ShapeError(
                f"{what!r} is for arrays of {len(self.parts)} dimensions; one of shape "
                f"{tuple(shape)} has {len(shape)}"
            )
        for dimension, (size, parts) in enumerate(zip(shape, self.parts, strict=True)):
            if size % parts:
                raise ShapeError(
                    f"{what!r} divides dimension {dimension} into {parts} equal parts; of the "
                    f"shape {tuple(shape)} its size {size} cannot be divided by {parts}: pad it "
                    f"to {size + parts - size % parts}, or take a sharding that leaves it whole"
                )
        return tuple(size // parts for size, parts in zip(shape, self.parts, strict=True))

    def coordinates(self) -> list[tuple[int, ...]]:
        """Returns, for each device, the number of its part along each dimension."""
        if not self.parts:
            return [()] * len(self.tiles)
        along = np.unravel_index(self.tiles, self.parts)
        return [*zip(*(numbers.tolist() for numbers in along), strict=True)]

    def slices(self, part_shape: Sequence[int]) -> list[Slices]:
        """Returns each device's slices of an array whose parts have a shape."""
        return [
            tuple(
                slice(None) if parts == 1 else slice(i * size, (i + 1) * size)
                for i, parts, size in zip(at, self.parts, part_shape, strict=True)
            )
            for at in self.coordinates()
        ]


def with_terms(parts: tuple[int, ...], tiles: tuple[int, ...], terms: Sequence[int]) -> Tiling:
    """Returns a tiling: devices with equal ``terms`` have the same term of their part.

    Sums have no order: the terms of a part are numbered by the first device that has each.
    """
    numbers: dict[int, dict[int, int]] = {}
    own = []
    for tile, term in zip(tiles, terms, strict=True):
        known = numbers.setdefault(tile, {})
        own.append(known.setdefault(term, len(known)))
    return Tiling(parts, tiles, tuple(own) if any(own) else ())


def whole(ndim: int, devices: int = 1) -> Tiling:
    """Returns the tiling of a replicated array."""
    return Tiling((1,) * ndim, (0,) * devices)
