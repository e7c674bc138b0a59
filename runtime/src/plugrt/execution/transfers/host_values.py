"""Conversion of host values to arrays: arguments, scalars and captured constants."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.base.bounded_cache import BoundedCache
from plugrt.errors import DeletedBuffer
from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.array_making import share_buffers
from plugrt.execution.arrays.casting import cast
from plugrt.execution.arrays.host_data import (
    host_array,
    needs_unsigned,
    python_scalar,
    scalar_dtype,
)
from plugrt.execution.arrays.transfer_guard import check_transfer
from plugrt.execution.placement.default_device import default_device
from plugrt.execution.shardings.sharding_base import Sharding, SingleDeviceSharding
from plugrt.execution.transfers.sharded_transfer import put_sharded
from plugrt.execution.transfers.whole_arrays import beside, put, put_whole
from plugrt.interface import Shards
from plugrt.settings.declarations import config

_scalars: BoundedCache[object, Array] = BoundedCache(512)
_held: BoundedCache[object, Shards] = BoundedCache(512)
_beside: BoundedCache[object, Array] = BoundedCache(512)


def as_array(x: object, name: str) -> Array:
    """Returns an array unchanged, and a host value as an uncommitted array on the default device.

    Raises `NotAnArray`, `UnsupportedDtype`, `DeletedBuffer` or `LeakedTracer` with ``name``.
    """
    if type(x) is Array:
        if x._shards is None and x.is_deleted():
            raise DeletedBuffer(f"{name}: {x._deleted_message()}")
        return x
    if isinstance(x, Array):  # raises `LeakedTracer` for a leaked tracer
        x._live()
    if (plain := python_scalar(x)) is not None:
        here = SingleDeviceSharding(default_device())
        kept = put_scalar(here, plain, scalar_dtype(plain))
        return share_buffers(kept, kept._aval)
    return put(host_array(x, name), default_device(), committed=False)


def put_scalar(
    where: Sharding, x: bool | int | float | complex, dtype: np.dtype[np.generic]
) -> Array:
    """Returns a Python scalar as an array of ``dtype``, cached: not to be deleted.

    It is on each device of the sharding, and uncommitted. The same few values recur (``x + 1``,
    ``0.5 * x``).
    """
    key = _scalar_key(where, x, dtype)
    found = _scalars.get(key)
    if found is None:
        found = put_whole(cast(x, dtype), where, committed=False, weak=True)
        _scalars.keep(key, found)
    return found


def hold_scalar(
    where: Sharding, x: bool | int | float | complex, dtype: np.dtype[np.generic]
) -> Shards:
    """Returns the launch form of a Python scalar, cached: it must not be deleted."""
    key = _scalar_key(where, x, dtype)
    found = _held.get(key)
    if found is None:
        found = put_whole(cast(x, dtype), where, committed=False, weak=True)._held()
        _held.keep(key, found)
    return found


def _scalar_key(
    where: Sharding, x: bool | int | float | complex, dtype: np.dtype[np.generic]
) -> object:
    # 0.0 == -0.0 (also in complex numbers) and NaN != NaN, so those are keyed by repr().
    plain = type(x) is not complex and x and x == x
    return where, dtype, type(x), x if plain else repr(x)


def scalar_operand(x: bool | int | float | np.generic, array: Array) -> Array:
    """Returns a Python or NumPy scalar as an array on ``array``'s devices, for ``x + 1``.

    For an array over a mesh it is replicated, and put only once. This is a fast path of `as_array`,
    but not for a Python -0.0, which equals 0.0 as a dict key.
    """
    aval = array._aval
    value = x.tobytes() if isinstance(x, np.generic) else x
    key = (config.token(), aval, type(x), value)
    found = _beside.get(key)
    if found is None:
        where = beside(aval.sharding)
        if key[0].guarded:
            what = f"the scalar {x!r}, to {where!r}"
            check_transfer("host_to_device", what, explicit=True)
        if aval.dtype == np.uint32 and needs_unsigned(x):
            x = np.uint32(x)
        if isinstance(x, np.generic):
            found = put_whole(host_array(x), where, committed=False)
        elif isinstance(x, float | complex) and aval.dtype.char in "dD":
            found = put_scalar(where, x, np.result_type(x, np.float64))
        else:
            found = put_scalar(where, x, scalar_dtype(x))
        _beside.keep(key, found)
    return found


class HostConstant:
    """The contents of a host array when a function was traced, put once on each device.

    It is a copy, since the array may change before programs are loaded, perhaps for other devices.
    All programs of one trace share it: the function's own, and those of functions that call it.
    """

    __slots__ = ("_placed", "_source", "data")

    def __init__(self, source: Any, host: npt.NDArray[np.generic]) -> None:
        """``host`` is ``source``, converted to a dtype of devices."""
        self.data = host.copy()
        # NumPy's scalars cannot be referred to weakly.
        self._source = weakref.ref(source) if isinstance(source, np.ndarray) else None
        self._placed: weakref.WeakValueDictionary[Sharding, Array] = weakref.WeakValueDictionary()

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions of the array."""
        return self.data.shape

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The dtype of an element."""
        return self.data.dtype

    @property
    def source(self) -> npt.NDArray[np.generic] | None:
        """The array that it was copied from, while that exists; else None."""
        return None if self._source is None else self._source()

    def has_value(self, host: npt.NDArray[np.generic]) -> bool:
        """Whether ``host`` has equal contents, bit by bit."""
        if (host.shape, host.dtype) != (self.shape, self.dtype):
            return False
        return np.array_equal(_bytes(host), _bytes(self.data))

    def place(self, sharding: Sharding) -> Array:
        """Puts it on the devices of ``sharding``; reuses the array while a program holds it."""
        found = self._placed.get(sharding)
        if found is None:
            found = self._placed.setdefault(sharding, put_sharded(self.data, sharding))
        return found


def _bytes(host: npt.NDArray[np.generic]) -> npt.NDArray[np.uint8]:
    return np.ascontiguousarray(host).reshape(-1).view(np.uint8)
