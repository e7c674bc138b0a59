"""`Box`: the range of indices, in each dimension of an array, that a device holds."""

from __future__ import annotations

from collections.abc import Sequence

from plugrt.execution.shardings.sharding_base import Index, Sharding
from plugrt.interface import Device

Box = tuple[tuple[int, int], ...]
"""Start and stop in each dimension of the whole array."""


def device_boxes(sharding: Sharding, shape: tuple[int, ...]) -> dict[Device, Box]:
    """Returns the box that each device of this process holds of an array of ``shape``.

    They are in the order of ``sharding.addressable_devices``.
    """
    where = sharding.devices_indices_map(shape)
    return {device: _box(where[device], shape) for device in sharding.addressable_devices}


def _box(index: Index, shape: tuple[int, ...]) -> Box:
    return tuple(i.indices(size)[:2] for i, size in zip(index, shape, strict=True))


def box_shape(box: Box) -> tuple[int, ...]:
    """Returns the length of a box along each dimension."""
    return tuple(stop - start for start, stop in box)


def overlap(a: Box, b: Box) -> Box | None:
    """Returns the intersection of two boxes; None if it is empty.

    Equal boxes overlap wholly, even if they are empty.
    """
    if a == b:
        return a
    both = tuple(
        (max(start, other_start), min(stop, other_stop))
        for (start, stop), (other_start, other_stop) in zip(a, b, strict=True)
    )
    return both if all(start < stop for start, stop in both) else None


def relative_box(box: Box, whole: Box) -> Box:
    """Returns a box relative to the start of another box that contains it."""
    return tuple(
        (start - origin, stop - origin)
        for (start, stop), (origin, _) in zip(box, whole, strict=True)
    )


def first_split(boxes: Sequence[Box]) -> int | None:
    """Returns the first dimension in which boxes have different starts; None if all agree."""
    for dimension, ranges in enumerate(zip(*boxes, strict=True)):
        if len({start for start, _ in ranges}) > 1:
            return dimension
    return None
