"""`TiledSharding`: the base of shardings that divide dimensions into equal parts."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from plugrt.errors import Unimplemented
from plugrt.execution.shardings.sharding_base import (
    Index,
    Sharding,
    read_memory_kind,
    read_shape,
)
from plugrt.execution.shardings.tiling import Tiling
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import Device


class TiledSharding(Sharding):
    """The base of shardings whose parts have as many dimensions as the array.

    A subclass computes the tiling of an array in `_make_tiling`.
    """

    __slots__ = ("_addressable", "_devices", "_memory_kind", "_tilings")

    def __init__(self, devices: Sequence[Device], memory_kind: str | None) -> None:
        """Raises `InvalidArgument` for a memory kind that a device of this process lacks."""
        self._devices = tuple(devices)
        self._memory_kind = read_memory_kind(memory_kind, self._devices)
        self._tilings: dict[int, Tiling] = {}
        self._addressable = tuple(device for device in self._devices if device.is_addressable)

    @property
    def devices(self) -> tuple[Device, ...]:
        return self._devices

    @property
    def addressable_devices(self) -> tuple[Device, ...]:
        return self._addressable or super().addressable_devices

    @property
    def memory_kind(self) -> str | None:
        return self._memory_kind

    @property
    def plain_device(self) -> Device | None:
        return self._devices[0] if len(self._devices) == 1 and self._memory_kind is None else None

    def _make_tiling(self, ndim: int) -> Tiling:
        """Returns the tiling of arrays of ``ndim`` dimensions; `ShapeError` if there is none."""
        raise NotImplementedError

    @with_argument_errors
    def tiling(self, ndim: int) -> Tiling:
        ndim = operator.index(ndim)
        found = self._tilings.get(ndim)
        if found is None:
            found = self._tilings[ndim] = self._make_tiling(ndim)
        return found

    @with_argument_errors
    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        shape = read_shape(global_shape)
        return self.tiling(len(shape)).shard_shape(shape, self)

    @with_argument_errors
    def whole_shape(self, shard_shape: Sequence[int]) -> tuple[int, ...]:
        shape = read_shape(shard_shape)
        parts = self.tiling(len(shape)).parts
        return tuple(size * count for size, count in zip(shape, parts, strict=True))

    @with_argument_errors
    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Device, Index]:
        if self.is_summed(len(global_shape)):
            raise Unimplemented(
                f"{self!r}: each device has a term of a sum, not a part of the array; "
                "plugrt.sharding.reshard adds them up"
            )
        return self._places(global_shape)

    def _places(self, global_shape: Sequence[int]) -> dict[Device, Index]:
        shape = read_shape(global_shape)
        slices = self.tiling(len(shape)).slices(self.shard_shape(shape))
        return dict(zip(self.devices, slices, strict=True))

    def is_summed(self, ndim: int) -> bool:
        return bool(self.tiling(ndim).terms)
