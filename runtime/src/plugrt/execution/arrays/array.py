"""`Array`: n-dimensional data on one or several devices."""

from __future__ import annotations

import copyreg
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Never, NoReturn, Self

import numpy as np
import numpy.typing as npt

from plugrt.errors import NotAnArray, Unimplemented
from plugrt.execution.arrays.array_deletion import Deletable
from plugrt.execution.arrays.array_repr import array_repr, array_str
from plugrt.execution.arrays.aval import ArrayAval, Aval, intern_aval, sharding_type
from plugrt.execution.compilation.buffer_copy import copy_in_place
from plugrt.execution.shardings.format import Format
from plugrt.execution.shardings.replica_sharding import ReplicaSharding
from plugrt.execution.shardings.sharding_base import Index, Sharding, SingleDeviceSharding
from plugrt.frames.argument_errors import with_argument_errors, with_checked_methods
from plugrt.interface import Device, Shards
from plugrt.lifetime.forks import in_child
from plugrt.monitoring.listeners import listening
from plugrt.native.native_core import core
from plugrt.settings.declarations import config


class PythonArray:
    """The slots of an `Array`."""

    # `_extra` holds the host copy, after deletion a `Deletion`. It is None at first: reading a slot
    # that is not set costs as much as setting forty.
    __slots__ = ("_aval", "_extra", "_shards")

    # The buffers as launches accept and return them: `Shards`, or a backend's own object in their
    # place (see `LoadedExecutable.launcher`); `Array._live` returns the `Shards` in either case.
    _shards: Any
    _aval: object
    _extra: object
    _is_viewed = False
    """Whether the core made views that ``_extra`` does not show."""


ArrayBase = PythonArray
if core is not None and not TYPE_CHECKING:
    ArrayBase = core.Array
"""The first base of `plugrt.execution.arrays.array.Array`; the core's has the same attributes."""


class ArrayMeta(type):
    """Lets ``isinstance(x, Array)`` hold for traced arrays as well, as in JAX.

    It also refuses ``Array()``, so that the class itself has no ``__init__``: `blank` in
    `plugrt.execution.arrays.array` is faster without.
    """

    tracer_class: type | None = None

    def __instancecheck__(cls, instance: object) -> bool:
        found = type(instance)
        return (
            found is cls
            or issubclass(found, cls)
            or (cls.tracer_class is not None and issubclass(found, cls.tracer_class))
        )

    def __call__(cls, *_: Never, **__: Never) -> NoReturn:  # to type checkers, an error
        raise_not_made_so("plugrt.Array is not called directly")


def raise_not_made_so(what: str) -> NoReturn:
    """Raises an error that states how arrays are made."""
    raise NotAnArray(f"{what}; use plugrt.array_api.asarray(...) or plugrt.device_put(...)")


_token = config.token


@dataclass(frozen=True, slots=True)
class Shard:
    """One device's part of an array: ``data``, and ``index``, its position in the whole array."""

    device: Device
    index: Index
    data: Array
    """The part, on its device; None on a device of another process (`Array.global_shards`)."""
    replica_id: int


@with_checked_methods
class Array(ArrayBase, Deletable, metaclass=ArrayMeta):
    """An immutable array on one or several devices; operations on it are launched there.

    Made by ``plugrt.device_put``, by the functions of ``plugrt.array_api`` and by jitted
    functions, not by calling the class. It implements the Python array API standard 2024.12 and
    the protocols of NumPy and DLPack. Results arrive asynchronously: reading one waits for it, and
    raises the error of the computation if that failed.
    """

    # State of arrays that share buffers (see `sharers`); not set without sharers. `_is_alone` is an
    # exception: it records that an assignment made the buffers and no other code has read them
    # since. `_assignment` is set while one writes to the buffers.
    __slots__ = ("__weakref__", "_assignment", "_is_alone", "_lives", "_sharers")

    __array_priority__ = 100  # a NumPy array as the left operand defers to this class

    _aval: ArrayAval
    __weakref__: object  # None without weak references

    def __new__(cls, *_: Never, **__: Never) -> Self:
        raise_not_made_so("a plugrt.Array is not made by its class, but by plugrt's functions")

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions of the whole array."""
        return self._aval.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of an element, NumPy's or ml_dtypes'."""
        return self._aval.dtype

    @property
    def aval(self) -> Aval:
        """Shape, dtype, weak type, sharding and layout, as one object; equal avals are identical.

        Over a mesh of Explicit axes its sharding has no devices.
        """
        aval = self._aval
        if (sharding := sharding_type(aval)) is not None:
            return intern_aval(aval.shape, aval.dtype, sharding, False, aval.weak, aval.layout)
        return aval

    @property
    def weak_type(self) -> bool:
        """Whether the dtype yields to other operands', as a Python scalar's does."""
        return self._aval.weak

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._aval.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self._aval.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of one element on the host."""
        return self._aval.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of the whole array on the host."""
        return self.size * self._aval.dtype.itemsize

    @property
    def sharding(self) -> Sharding:
        """How the data are distributed over devices."""
        return self._aval.sharding

    @property
    def format(self) -> Format:
        """The sharding and the layout in memory; as in JAX.

        The layout is None if the backend does not state it, after the array is deleted, and for an
        array without a part in this process.
        """
        sharding = self._aval.sharding
        if self.is_deleted() or not self._live():
            return Format(None, sharding)
        try:
            return Format(self._live()[0].layout, sharding)
        except Unimplemented:
            return Format(None, sharding)

    @property
    def committed(self) -> bool:
        """Whether the array must stay on its device (`device_put` to a device was called)."""
        return self._aval.committed

    @property
    def device(self) -> Device | Sharding:
        """The device, or for an array on several devices its sharding (as in JAX)."""
        sharding = self._aval.sharding
        return sharding.devices[0] if sharding.num_devices == 1 else sharding

    def devices(self) -> set[Device]:
        """Returns the devices that hold a part."""
        return self._aval.sharding.device_set

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all of the data are in this process."""
        return self._aval.sharding.is_fully_addressable

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each device holds all of the data."""
        return self._aval.sharding.is_fully_replicated

    @property
    def addressable_shards(self) -> list[Shard]:
        """The parts that this process holds, each as an `Array` on its device, without a copy.

        Deleting or donating one ends the whole, and the whole all, but no results of programs.
        """
        return [shard for shard in self.global_shards if shard.device.is_addressable]

    @property
    def global_shards(self) -> list[Shard]:
        """The parts on all devices; the ``data`` of those in other processes are None.

        ``replica_id`` numbers the devices that have the same part, in the order of the sharding.
        """
        sharding = self._aval.sharding
        shape = sharding.shard_shape(self.shape)
        where = sharding._places(self.shape)
        held = self._held()
        buffers = dict(zip(sharding.addressable_devices, self._open_shards(held), strict=True))
        seen: Counter[str] = Counter()
        result = []
        for device in sharding.devices:
            data: Any = None
            if device in buffers:
                here = SingleDeviceSharding(device, memory_kind=sharding.memory_kind)
                layout = self._aval.layout
                old = self._aval
                place = intern_aval(shape, old.dtype, here, old.committed, old.weak, layout)
                data = new_array((buffers[device],), place)
            index = where[device]
            result.append(Shard(device, index, data, seen[repr(index)]))
            seen[repr(index)] += 1
        self._keep_parts([shard.data for shard in result if shard.data is not None], held)
        return result

    @with_argument_errors
    def addressable_data(self, index: int) -> Array:
        """Returns the part on the ``index``-th device of this process."""
        return self.addressable_shards[index].data

    def __reduce__(self) -> Any:
        # Pickling is implemented in `transfer`, which can put the contents on a device again.
        return copyreg.dispatch_table[Array](self)

    def __copy__(self) -> Array:
        # A real copy: deleting or donating one array must not affect the other.
        return duplicate(self)

    def __deepcopy__(self, memo: dict[int, object]) -> Array:
        return self.__copy__()

    def _words(self) -> Array:
        """For random keys, the array of their words, which shares the buffers."""
        words: Any = self._aval.of_words  # type: ignore[attr-defined]
        return new_array(self._live(), words)

    def _printed(self) -> npt.NDArray[np.generic]:
        """The contents that printing shows; for a replica's value, the values of all replicas."""
        sharding = self._aval.sharding
        if type(sharding) is ReplicaSharding:
            return sharding.stack(self._live())
        return np.asarray(self)

    def __repr__(self) -> str:
        return array_repr(self)

    def __str__(self) -> str:
        return array_str(self)


if core is not None:
    core.set_array_class(Array)
    core.set_read_hooks(
        Deletable._host,
        Deletable.__array__,
        Deletable._buffer,
        (listening,),
        SingleDeviceSharding,
    )
    core.set_wait_hooks(Deletable.block_until_ready, Deletable.is_ready, (listening, in_child))

blank: Callable[[], Array] = partial(object.__new__, Array)
"""Makes an array without values in its slots; the caller sets them."""


def new_array(shards: Shards, aval: ArrayAval) -> Array:
    """Returns the array of these buffers. Not checked: they must fit the aval."""
    return array_holding(launch_form(shards), aval)


def launch_form(shards: Shards) -> Any:
    """Returns `Shards` as arrays keep them: unchanged, or the backend's object in their place."""
    return getattr(shards, "held", shards)


def array_holding(held: object, aval: ArrayAval) -> Array:
    """Returns an array over the result of a launch. Not checked: it must fit the aval."""
    array = blank()
    array._shards = held
    array._aval = aval
    array._extra = None
    return array


if core is not None:
    array_holding = core.make_array


def duplicate(array: Array) -> Array:
    """Returns a copy of ``array`` with the same sharding, in buffers of its own."""
    copies = copy_in_place(array._live(), array._aval.layout)
    return new_array(copies, array._aval)
