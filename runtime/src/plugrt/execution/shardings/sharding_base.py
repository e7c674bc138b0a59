"""`Sharding`, the base of all; `SingleDeviceSharding` and `PmapSharding`, as in JAX."""

from __future__ import annotations

import operator
import weakref
from collections.abc import Sequence
from typing import Any

from plugrt.errors import ArgumentTypeError, InvalidArgument, ShapeError, Unimplemented
from plugrt.execution.shardings.tiling import Tiling, whole
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import Device
from plugrt.plugins.selection import backends

Index = tuple[slice | int, ...]
"""The position of a shard in the whole array, as a NumPy index."""


class Sharding:
    """The base: an immutable, hashable description of where each part of an array lives."""

    __slots__ = ("__weakref__",)

    @property
    def devices(self) -> tuple[Device, ...]:
        """All devices that hold a part, in device-assignment order."""
        raise NotImplementedError

    @property
    def device_set(self) -> set[Device]:
        """All devices that hold a part."""
        return set(self.devices)

    @property
    def num_devices(self) -> int:
        """The number of devices, of all processes."""
        return len(self.devices)

    @property
    def addressable_devices(self) -> tuple[Device, ...]:
        """The devices of this process, in device-assignment order."""
        return tuple(d for d in self.devices if d.is_addressable)

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all of the array is in this process."""
        return all(d.is_addressable for d in self.devices)

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each device holds the whole array."""
        raise NotImplementedError

    @property
    def memory_kind(self) -> str | None:
        """The kind of memory that the parts are in; None is the devices' default."""
        return None

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """Returns the shape of one device's part of an array of ``global_shape``.

        Raises `ShapeError` where the shape does not divide.
        """
        raise NotImplementedError

    def whole_shape(self, shard_shape: Sequence[int]) -> tuple[int, ...]:
        """Returns the shape of an array whose part on each device has ``shard_shape``."""
        raise NotImplementedError

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Device, Index]:
        """Returns which part of an array of ``global_shape`` each device holds."""
        raise NotImplementedError

    def addressable_devices_indices_map(self, global_shape: Sequence[int]) -> dict[Device, Index]:
        """Returns which part each device of this process holds."""
        where = self.devices_indices_map(global_shape)
        return {device: where[device] for device in self.addressable_devices}

    def distinct_parts(self, global_shape: Sequence[int]) -> list[tuple[int, Index]]:
        """Returns the different parts that this process holds.

        Each as the number, among ``addressable_devices``, of the first device that has it, and its
        position.
        """
        where = self.addressable_devices_indices_map(global_shape)
        first: dict[tuple[Any, ...], tuple[int, Index]] = {}
        for number, index in enumerate(where.values()):
            bounds = tuple((i.start, i.stop) if isinstance(i, slice) else i for i in index)
            first.setdefault(bounds, (number, index))
        return [*first.values()]

    def with_memory_kind(self, kind: str) -> Sharding:
        """Returns the same sharding in the devices' memories of a kind.

        Raises `InvalidArgument` for a kind that a device lacks.
        """
        raise NotImplementedError

    def tiling(self, ndim: int) -> Tiling | None:
        """Returns how arrays of ``ndim`` dimensions are divided into equal parts.

        None where the parts have fewer dimensions than the array. Raises `ShapeError` where such
        arrays cannot be divided so.
        """
        raise NotImplementedError

    @with_argument_errors
    def queried_tiling(self, ndim: int) -> Tiling | None:
        """Returns `tiling`, also of fewer dimensions than are named, if those are not divided.

        No array is put so, but asking where its parts were is answered, as in JAX.
        """
        return self.tiling(ndim)

    @with_argument_errors
    def check_shape(self, shape: Sequence[int]) -> None:
        """Raises `ShapeError` where no array of a shape can have this sharding."""
        shape = read_shape(shape)
        self.tiling(len(shape))
        self.shard_shape(shape)

    @with_argument_errors
    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Whether arrays of ``ndim`` dimensions lie in the same parts on the same devices.

        Shardings of different classes can be equivalent; the order of the devices counts, and the
        kind of memory does.
        """
        if self == other:
            return True
        if not isinstance(other, Sharding):
            raise ArgumentTypeError(f"is_equivalent_to takes a sharding; got {other!r:.100}")
        if self.devices != other.devices or _memory_kind(self) != _memory_kind(other):
            return False
        tiling = self.queried_tiling(ndim)
        return tiling is not None and tiling == other.queried_tiling(ndim)

    def __reduce__(self) -> Any:
        raise ArgumentTypeError(
            "a sharding names devices of this process and cannot be pickled; pickle the array "
            "instead: it comes back on the default device"
        )


def _memory_kind(sharding: Sharding) -> str | None:
    return sharding.memory_kind or default_memory_kind(sharding.devices)


def default_memory_kind(devices: Sequence[Device]) -> str | None:
    """Returns the kind of memory that arrays on these devices are in unless something else is said.

    Libraries know the memories of their process's devices alone: None where all are of others, or
    where the library names no memories.
    """
    first = next((device for device in devices if device.is_addressable), None)
    try:
        return None if first is None else first.default_memory().kind
    except Unimplemented:
        return None


def read_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """Returns a shape as a tuple of ints; `TypeError` for what is none."""
    return tuple(map(operator.index, shape))


class SingleDeviceSharding(Sharding):
    """The whole array on one device. There is one object for each device and memory kind."""

    __slots__ = ("_device", "_memory_kind")

    _device: Device
    _memory_kind: str | None

    def __new__(cls, device: Device, *, memory_kind: str | None = None) -> SingleDeviceSharding:
        if memory_kind is None:  # the usual case, wherever data are put: one plain look-up
            try:
                alive = _DEFAULT.get(device, _return_none)()
            except TypeError:  # it cannot be hashed, so that it is no device
                alive = None
            if alive is not None:
                return alive
        if not isinstance(device, Device):
            raise InvalidArgument(
                f"SingleDeviceSharding takes a device (see plugrt.devices()); got {device!r}"
            )
        key = (device, memory_kind)
        found = _SINGLE.get(key)
        if found is None:
            if memory_kind is not None:
                device.memory(memory_kind)  # refuses a kind that the device lacks
            found = super().__new__(cls)
            found._device, found._memory_kind = device, memory_kind
            found = _SINGLE.setdefault(key, found)
        if memory_kind is None:
            _DEFAULT[device] = weakref.ref(found, lambda ref: _forget(device, ref))
        return found

    @property
    def devices(self) -> tuple[Device, ...]:
        return (self._device,)

    @property
    def device(self) -> Device:
        """The device."""
        return self._device

    @property
    def memory_kind(self) -> str | None:
        return self._memory_kind

    @property
    def is_fully_replicated(self) -> bool:
        return True

    @with_argument_errors
    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        return read_shape(global_shape)

    @with_argument_errors
    def whole_shape(self, shard_shape: Sequence[int]) -> tuple[int, ...]:
        return read_shape(shard_shape)

    @with_argument_errors
    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Device, Index]:
        return {self._device: (slice(None),) * len(global_shape)}

    @with_argument_errors
    def with_memory_kind(self, kind: str) -> SingleDeviceSharding:
        return SingleDeviceSharding(self._device, memory_kind=kind)

    @with_argument_errors
    def tiling(self, ndim: int) -> Tiling:
        return whole(operator.index(ndim))

    def __repr__(self) -> str:
        where = f", memory_kind={self._memory_kind!r}" if self._memory_kind else ""
        return f"SingleDeviceSharding({self._device!r}{where})"


_SINGLE: weakref.WeakValueDictionary[tuple[Device, str | None], SingleDeviceSharding]
# Process-wide: equal shardings are one object, and warm calls compare objects.
_SINGLE = weakref.WeakValueDictionary()
# Process-wide: equal shardings are one object, and warm calls compare objects.
_DEFAULT: dict[Device, weakref.ref[SingleDeviceSharding]] = {}
"""Those of the devices' default memories; an entry goes with its sharding, as in `_SINGLE`."""


def _return_none() -> None:
    return None


def _forget(device: Device, ref: weakref.ref[SingleDeviceSharding]) -> None:
    if _DEFAULT.get(device) is ref:
        del _DEFAULT[device]


class PmapSharding(Sharding):
    """One slice of the array on each device: what `pmap` gives and takes without a copy.

    ``sharded_dim`` is the dimension that is split into slices of size one, which the slices do
    not have (as in JAX's PmapSharding); None means that each device holds the whole array.
    ``replicas`` devices in a row hold the same slice: so it is where a pmap has others within.
    Raises `InvalidArgument` for no devices, one that is named twice, or a number of them that
    ``replicas`` does not divide.
    """

    __slots__ = ("_devices", "_hash", "_replicas", "_sharded_dim")

    @classmethod
    @with_argument_errors
    def default(
        cls,
        shape: Sequence[int],
        sharded_dim: int | None = 0,
        devices: Sequence[Device] | None = None,
    ) -> PmapSharding:
        """Returns the sharding that an array of ``shape`` has for `pmap`.

        ``devices`` are by default the first of the default backend, one for each slice along
        ``sharded_dim``; with None all devices hold the whole. As JAX's method of that name. Raises
        `ShapeError` for a shape without that dimension, and where there are too few devices.
        """
        sizes = read_shape(shape)
        if sharded_dim is not None and operator.index(sharded_dim) not in range(len(sizes)):
            raise ShapeError(f"an array of shape {sizes} has no dimension {sharded_dim!r} to split")
        found = backends.devices() if devices is None else list(devices)
        if sharded_dim is None:
            return cls(found, None)
        count = sizes[sharded_dim]
        if len(found) < count or (devices is not None and len(found) != count):
            raise ShapeError(
                f"dimension {sharded_dim} of the shape {sizes} has {count} slices, one for each "
                f"device; there are {len(found)} devices"
            )
        return cls(found[:count], sharded_dim)

    @with_argument_errors
    def __init__(
        self, devices: Sequence[Device], sharded_dim: int | None = 0, *, replicas: int = 1
    ) -> None:
        self._devices = tuple(devices)
        self._sharded_dim = sharded_dim
        self._replicas = replicas
        non_devices = [d for d in self._devices if not isinstance(d, Device)]
        if non_devices or not self._devices:
            raise InvalidArgument(
                "PmapSharding takes devices, at least one (see plugrt.devices()); got "
                f"{non_devices or 'none'}"
            )
        if len(set(self._devices)) != len(self._devices):
            raise InvalidArgument(f"PmapSharding names a device twice: {list(devices)}")
        if sharded_dim is not None and (type(sharded_dim) is not int or sharded_dim < 0):
            raise InvalidArgument(
                f"PmapSharding's sharded_dim is a dimension from 0 or None; got {sharded_dim!r}"
            )
        if type(replicas) is not int or replicas < 1 or len(self._devices) % replicas:
            raise InvalidArgument(
                f"PmapSharding's replicas is how many devices hold each slice, which divides the "
                f"number of devices, {len(self._devices)}; got {replicas!r}"
            )
        if sharded_dim is None and replicas > 1:
            raise InvalidArgument("PmapSharding takes replicas of slices; sharded_dim is None")
        self._hash = hash((self._devices, sharded_dim, replicas))

    @property
    def devices(self) -> tuple[Device, ...]:
        return self._devices

    @property
    def sharded_dim(self) -> int | None:
        """The dimension that is split, or None."""
        return self._sharded_dim

    @property
    def is_fully_replicated(self) -> bool:
        return self._sharded_dim is None or self._count == 1

    @property
    def replicas(self) -> int:
        """How many devices in a row hold the same slice."""
        return self._replicas

    @property
    def _count(self) -> int:
        """The number of slices."""
        return len(self._devices) // self._replicas

    @with_argument_errors
    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        shape, dim = read_shape(global_shape), self._sharded_dim
        if dim is None:
            return shape
        if dim >= len(shape) or shape[dim] != self._count:
            raise ShapeError(
                f"{self!r} splits dimension {dim} over {self._count} devices; an array of "
                f"shape {shape} has "
                + (f"size {shape[dim]} there" if dim < len(shape) else "no such dimension")
            )
        return shape[:dim] + shape[dim + 1 :]

    @with_argument_errors
    def whole_shape(self, shard_shape: Sequence[int]) -> tuple[int, ...]:
        shape, dim = read_shape(shard_shape), self._sharded_dim
        return shape if dim is None else (*shape[:dim], self._count, *shape[dim:])

    @with_argument_errors
    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Device, Index]:
        self.shard_shape(global_shape)
        index: list[slice | int] = [slice(None)] * len(global_shape)
        result: dict[Device, Index] = {}
        for i, device in enumerate(self._devices):
            if self._sharded_dim is not None:
                index[self._sharded_dim] = i // self._replicas
            result[device] = tuple(index)
        return result

    def with_memory_kind(self, kind: str) -> Sharding:
        raise Unimplemented(
            "PmapSharding is in the default memories of its devices, as pmap's results are; "
            f"NamedSharding takes memory_kind={kind!r}"
        )

    @with_argument_errors
    def tiling(self, ndim: int) -> Tiling | None:
        ndim = operator.index(ndim)
        return whole(ndim, len(self._devices)) if self._sharded_dim is None else None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PmapSharding):
            return NotImplemented
        return (
            self._devices == other._devices
            and self._sharded_dim == other._sharded_dim
            and self._replicas == other._replicas
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        repeated = f", replicas={self._replicas}" if self._replicas > 1 else ""
        return f"PmapSharding({list(self._devices)}, sharded_dim={self._sharded_dim}{repeated})"
