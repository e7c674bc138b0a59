"""`Sharding`, the base class of all shardings, and `SingleDeviceSharding`, as in JAX."""

from __future__ import annotations

import operator
import weakref
from collections.abc import Sequence

from plugrt.base.bounded_cache import BoundedCache
from plugrt.errors import ArgumentTypeError, InvalidArgument, Unimplemented
from plugrt.execution.shardings.tiling import Tiling, whole
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import Device

Index = tuple[slice, ...]
"""The position of a shard in the whole array, as a NumPy index."""


class Sharding:
    """The base class: an immutable, hashable description of an array's parts and their devices."""

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

    @property
    def plain_device(self) -> Device | None:
        """The device, if arrays are on one device in its default memory; else None."""
        return None

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """Returns the shape of one device's part of an array of ``global_shape``.

        Raises `ShapeError` if the shape does not divide evenly.
        """
        raise NotImplementedError

    def whole_shape(self, shard_shape: Sequence[int]) -> tuple[int, ...]:
        """Returns the shape of an array whose part on each device has ``shard_shape``."""
        raise NotImplementedError

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Device, Index]:
        """Returns which part of an array of ``global_shape`` each device holds.

        Raises `Unimplemented` if devices hold terms of a sum (``PartitionSpec(unreduced=…)``).
        """
        raise NotImplementedError

    def _places(self, global_shape: Sequence[int]) -> dict[Device, Index]:
        """As `devices_indices_map`; for a device with a term, the part that includes it."""
        return self.devices_indices_map(global_shape)

    def is_summed(self, ndim: int) -> bool:
        """Whether devices hold terms of a sum, for an array of ``ndim`` dimensions."""
        return False

    def addressable_devices_indices_map(self, global_shape: Sequence[int]) -> dict[Device, Index]:
        """Returns which part each device of this process holds."""
        where = self.devices_indices_map(global_shape)
        return {device: where[device] for device in self.addressable_devices}

    @with_argument_errors
    def distinct_parts(self, global_shape: Sequence[int]) -> list[tuple[int, Index]]:
        """Returns the different parts that this process holds.

        Each is a pair: the index in ``addressable_devices`` of the first device that has it, and
        its position.
        """
        shape = read_shape(global_shape)

        def find() -> list[tuple[int, Index]]:
            first: dict[tuple[object, ...], tuple[int, Index]] = {}
            for number, index in enumerate(self.addressable_devices_indices_map(shape).values()):
                first.setdefault(tuple((i.start, i.stop) for i in index), (number, index))
            return [*first.values()]

        return _parts.get((self, shape)) or _parts.get_or_make((self, shape), find)

    def with_memory_kind(self, kind: str) -> Sharding:
        """Returns the same sharding in the devices' memories of a kind.

        Raises `InvalidArgument` for a kind that a device lacks.
        """
        raise NotImplementedError

    def tiling(self, ndim: int) -> Tiling | None:
        """Returns how arrays of ``ndim`` dimensions are divided into equal parts.

        None if each device has a value of its own (`ReplicaSharding`). Raises `ShapeError` if such
        arrays cannot be divided so.
        """
        raise NotImplementedError

    def check_rank(self, ndim: int) -> None:
        """Raises `ShapeError` if arrays of ``ndim`` dimensions cannot have this sharding."""
        self.tiling(ndim)

    @with_argument_errors
    def check_shape(self, shape: Sequence[int]) -> None:
        """Raises `ShapeError` if arrays of a shape cannot have this sharding."""
        shape = read_shape(shape)
        self.check_rank(len(shape))
        self.shard_shape(shape)

    @with_argument_errors
    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Whether arrays of ``ndim`` dimensions have the same parts on the same devices.

        Shardings of different classes can be equivalent; the order of the devices and the memory
        kind matter.
        """
        if self == other:
            return True
        if not isinstance(other, Sharding):
            raise ArgumentTypeError(f"is_equivalent_to takes a sharding; got {other!r:.100}")
        if self.devices != other.devices or self.memory_kind != other.memory_kind:
            return False
        tiling = self.tiling(ndim)
        return tiling is not None and tiling == other.tiling(ndim)

    def __reduce__(self) -> tuple[object, ...]:
        raise ArgumentTypeError(
            "a sharding names devices of this process and cannot be pickled; pickle the array "
            "instead: it is unpickled to the default device"
        )


_parts: BoundedCache[tuple[Sharding, tuple[int, ...]], list[tuple[int, Index]]]
_parts = BoundedCache(1024)


def default_memory_kind(devices: Sequence[Device]) -> str | None:
    """Returns the kind of the devices' default memory.

    Libraries know only the memories of their process's devices: None if all devices are of other
    processes, or if the library names no memories.
    """
    first = next((device for device in devices if device.is_addressable), None)
    try:
        return None if first is None else first.default_memory().kind
    except Unimplemented:
        return None


_KINDS = ("device", "pinned_host", "unpinned_host")


def read_memory_kind(kind: str | None, devices: Sequence[Device]) -> str | None:
    """Converts a memory kind to the form of shardings: None for the devices' default.

    Raises `InvalidArgument` for a kind that a device of this process lacks; without devices, over
    an `AbstractMesh`, for a kind that JAX does not know.
    """
    if kind is None:
        return None
    if not devices and kind not in _KINDS:
        raise InvalidArgument(
            f"memory_kind over a mesh without devices is one of {', '.join(_KINDS)}; got {kind!r}"
        )
    here = [device for device in devices if device.is_addressable]
    for device in here:
        device.memory(kind)
    return None if kind == default_memory_kind(here) else kind


def read_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """Returns a shape as a tuple of ints; raises `TypeError` for any other object."""
    return tuple(map(operator.index, shape))


class SingleDeviceSharding(Sharding):
    """The whole array on one device. There is one object for each device and memory kind."""

    __slots__ = ("_device", "_memory_kind", "plain_device")

    plain_device: Device | None
    _device: Device
    _memory_kind: str | None

    def __new__(cls, device: Device, *, memory_kind: str | None = None) -> SingleDeviceSharding:
        if memory_kind is None:  # the usual case of a put: one plain look-up
            try:
                alive = _DEFAULT.get(device, _return_none)()
            except TypeError:  # unhashable, so it is no device
                alive = None
            if alive is not None:
                return alive
        if not isinstance(device, Device):
            raise InvalidArgument(
                f"SingleDeviceSharding takes a device (see plugrt.devices()); got {device!r}"
            )
        kind = read_memory_kind(memory_kind, (device,))
        if kind != memory_kind:
            return cls(device)
        key = (device, memory_kind)
        found = _SINGLE.get(key)
        if found is None:
            found = super().__new__(cls)
            found._device, found._memory_kind = device, memory_kind
            found.plain_device = device if memory_kind is None else None
            found = _SINGLE.setdefault(key, found)
        if memory_kind is None:
            _DEFAULT[device] = weakref.ref(found, lambda ref: _forget(device, ref))
        return found

    @property
    def devices(self) -> tuple[Device, ...]:
        return (self._device,)

    @property
    def device(self) -> Device:
        """The only device of the sharding."""
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


@with_argument_errors
def make_single_device_sharding(
    device: Device, *, memory_kind: str | None = None
) -> SingleDeviceSharding:
    """Returns the sharding of a whole array on one device, in one of its memories.

    As ``jax.sharding.make_single_device_sharding``. Raises `InvalidArgument` if ``device`` is no
    device, and for a memory that it lacks.

    >>> plugrt.sharding.make_single_device_sharding(plugrt.devices("cpu")[0]).num_devices
    1
    """
    return SingleDeviceSharding(device, memory_kind=memory_kind)


_SINGLE: weakref.WeakValueDictionary[tuple[Device, str | None], SingleDeviceSharding]
# Process-wide: equal shardings are one object, and warm calls compare objects.
_SINGLE = weakref.WeakValueDictionary()
# Process-wide: equal shardings are one object, and warm calls compare objects.
_DEFAULT: dict[Device, weakref.ref[SingleDeviceSharding]] = {}
"""Shardings in default memories; an entry is removed with its sharding, as in `_SINGLE`."""


def _return_none() -> None:
    return None


def _forget(device: Device, ref: weakref.ref[SingleDeviceSharding]) -> None:
    if _DEFAULT.get(device) is ref:
        del _DEFAULT[device]
