"""`Region`: the index range of an array that a device holds."""

from __future__ import annotations

from collections.abc import Sequence

from plugrt.execution.sharding import Index, Sharding
from plugrt.interface import Device

Region = tuple[tuple[int, int], ...]
"""Start and stop in each dimension of the whole array; also in those that a part lacks."""


def device_regions(sharding: Sharding, shape: tuple[int, ...]) -> dict[Device, Region]:
    """Returns what each device of this process holds of an array of ``shape``.

    In the order of ``sharding.addressable_devices``.
    """
    where = sharding.devices_indices_map(shape)
    return {device: _region(where[device], shape) for device in sharding.addressable_devices}


def _region(index: Index, shape: tuple[int, ...]) -> Region:
    return tuple(
        i.indices(size)[:2] if isinstance(i, slice) else (i, i + 1)
        for i, size in zip(index, shape, strict=True)
    )


def region_shape(region: Region) -> tuple[int, ...]:
    """Returns the shape of a region, with all dimensions of the whole array."""
    return tuple(stop - start for start, stop in region)


def overlap(a: Region, b: Region) -> Region | None:
    """Returns the intersection of two regions; None where it is empty.

    Equal regions overlap wholly, even if they are empty.
    """
    if a == b:
        return a
    both = tuple(
        (max(start, other_start), min(stop, other_stop))
        for (start, stop), (other_start, other_stop) in zip(a, b, strict=True)
    )
    return both if all(start < stop for start, stop in both) else None


def relative_region(region: Region, whole: Region) -> Region:
    """Returns where a region lies in another that contains it, counted from that one's start."""
    return tuple(
        (start - origin, stop - origin)
        for (start, stop), (origin, _) in zip(region, whole, strict=True)
    )


def first_split(regions: Sequence[Region]) -> int | None:
    """Returns the first dimension in which regions begin at different places; None if all agree."""
    for dimension, ranges in enumerate(zip(*regions, strict=True)):
        if len({start for start, _ in ranges}) > 1:
            return dimension
    return None
