"""`device_put`, `device_get` and `block_until_ready`."""

from __future__ import annotations

import copyreg
import time
from typing import Any, TypeVar, overload

import numpy as np
import numpy.typing as npt

from plugrt import monitoring
from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.array_contents import await_held, await_together
from plugrt.execution.arrays.array_making import keys_over
from plugrt.execution.arrays.aval import is_of_keys
from plugrt.execution.arrays.transfer_guard import check_transfer, is_transfer
from plugrt.execution.placement.default_device import default_device
from plugrt.execution.placement.put_target import Space, Target, is_target, read_target, spread
from plugrt.execution.shardings.format import Format
from plugrt.execution.shardings.sharding_base import Sharding, SingleDeviceSharding
from plugrt.execution.transfers.quick_puts import keep_put, put_quickly
from plugrt.execution.transfers.tree_puts import (
    bytes_of_move,
    is_lifted,
    put_array,
    put_host,
    put_tree,
    space_of,
)
from plugrt.execution.trees import pytrees
from plugrt.frames.argument_errors import require_flag, with_argument_errors
from plugrt.frames.traceback_filter import with_user_frames
from plugrt.interface import Device
from plugrt.monitoring.listeners import listening
from plugrt.native.finalizers import finish_pending
from plugrt.native.known_dtypes import KNOWN_DTYPES, KeyDtype
from plugrt.native.native_core import core
from plugrt.settings.declarations import config
from plugrt.typing import ArrayLike, Container, PutTarget

T = TypeVar("T")
_NUMBERS = (bool, int, float, complex, *(d.type for d in KNOWN_DTYPES))
_KEPT = frozenset((list, tuple, dict, np.ndarray, Array, *_NUMBERS))
"""The classes of values whose puts `keep_put` keeps."""


@overload
def device_put(
    x: ArrayLike,
    device: PutTarget = None,
    *,
    src: PutTarget = None,
    donate: bool = False,
    may_alias: bool | None = None,
) -> Array: ...
@overload
def device_put(
    x: Any,
    device: PutTarget | Container = None,
    *,
    src: PutTarget | Container = None,
    donate: bool | Container = False,
    may_alias: bool | Container | None = None,
) -> Any: ...
@with_user_frames
def device_put(
    x: Any,
    device: Any = None,
    *,
    src: object = None,
    donate: object = False,
    may_alias: Any = None,
) -> Any:
    """Returns ``x`` (an array, a scalar, or a pytree of them) as `Array` on ``device``.

    ``device`` is a device, a sharding, also with another memory (``memory_kind="pinned_host"``), a
    `plugrt.layout.Format`, a `plugrt.memory.Space`, a `PartitionSpec` over the mesh in the context,
    or a pytree of these that is a prefix of ``x``. The result is then committed to it; with None,
    arrays are not moved and host data go to the default device, uncommitted, as in JAX. All host
    data for one device need one call to its backend.

    ``donate`` releases the source's memory. ``may_alias`` True lets a host array be used without a
    copy if its memory is aligned: from then on it must never change. False forces a copy of arrays
    too. None copies host data, and shares the memory of arrays, which never change. Both may be
    pytrees that are prefixes of ``x``. ``src`` is the current device of ``x``, which arrays have
    themselves: it is checked and not used.

    Within a traced function, a memory (as a Space, or as a sharding's) applies to values that are
    results of the outermost call. A sharding determines the program's devices, as a constraint
    does, also for host values and captured arrays; single devices and layouts are ignored for
    traced arrays, as in JAX.

    Where processes share the devices of a sharding, all call it with the same host data; an array
    may go to another sharding over the same devices (docs/processes.md).

    Raises `NotAnArray` with the path of an object that is no array, `StructureError` for a pytree
    that is no prefix, `Unimplemented` for layouts and memories that the backend lacks,
    `InvalidArgument` for a device of another process, and `DistributedError` for data that differ.

    >>> plugrt.device_put({"bias": 1.5}, plugrt.devices()[0])
    {'bias': Array(1.5, dtype=float32)}
    """
    plain = donate is False and src is None
    kept = plain and may_alias is None
    if kept and not listening and (put := put_quickly(x, device)) is not None:
        return put
    finish_pending()
    if config.token().guarded:
        _check_puts(x, device)
    start = time.perf_counter() if listening else 0.0
    if plain and type(x) in (np.ndarray, Array) and is_target(device) and not is_lifted(device):
        require_flag("device_put", "may_alias", may_alias, optional=True)
        before = getattr(x, "_shards", None)
        put_one = put_array if type(x) is Array else put_host  # the usual case
        result = put_one(x, read_target(device), may_alias)
        is_new = listening and result._shards is not before
        moved = bytes_of_move(x, result, may_alias) if is_new else 0
    else:
        result, moved = put_tree(x, device, src, donate, may_alias)
    if kept and type(x) in _KEPT:
        keep_put(x, device, result)
    if start:
        seconds = time.perf_counter() - start
        monitoring.record_event_duration_secs(monitoring.DEVICE_PUT, seconds, bytes=moved)
    return result


def _check_puts(x: object, device: object) -> None:
    """Applies the transfer guard to the arguments of `device_put`."""
    leaves = pytrees.flatten(x)[0]
    targets = spread(device, x, len(leaves), "device", is_target)
    for leaf, target in zip(leaves, targets, strict=True):
        there = _sharding_of(read_target(target), leaf)
        if type(leaf) is Array:
            if there is not None and is_transfer(leaf.sharding, there):
                what = f"{leaf._aval.tensor_type}, from {leaf.sharding!r} to {there!r}"
                check_transfer("device_to_device", what, explicit=True)
        elif not isinstance(leaf, Array):
            what = f"{leaf!r:.40}, to {there or default_device()!r}"
            check_transfer("host_to_device", what, explicit=True)


def _sharding_of(to: Target, leaf: object) -> Sharding | None:
    if isinstance(to, Space):
        return space_of(leaf, to) if type(leaf) is Array else to.on(default_device())
    if isinstance(to, Format):
        return to.sharding
    return SingleDeviceSharding(to) if isinstance(to, Device) else to


@overload
def device_get(x: Array) -> npt.NDArray[Any]: ...
@overload
def device_get(x: object) -> Any: ...
def device_get(x: object) -> Any:
    """Returns a pytree with every array in it as a NumPy array (read-only where not copied).

    All copies to the host begin before it waits for the first. Other leaves with ``__array__``
    become NumPy arrays, too, such as NumPy's scalars; other leaves and random keys stay unchanged,
    as in JAX.

    Raises the error of a computation that failed to make one.

    >>> plugrt.device_get({"x": xp.asarray([1, 2])})
    {'x': array([1, 2], dtype=int32)}
    """
    if not config.token().guarded:
        return _get(x)
    for leaf in pytrees.flatten(x)[0]:
        if type(leaf) is Array:
            leaf._check_read(explicit=True)
    with config.override(transfer_guard_device_to_host="allow"):
        return _get(x)


def _get(x: object) -> Any:
    leaves, spec = pytrees.flatten(x)
    keys = [type(leaf) is Array and is_of_keys(leaf._aval) for leaf in leaves]
    for leaf, is_key in zip(leaves, keys, strict=True):
        if type(leaf) is Array and not is_key:
            leaf.copy_to_host_async()
    read = [
        np.asarray(leaf) if hasattr(leaf, "__array__") and not is_key else leaf
        for leaf, is_key in zip(leaves, keys, strict=True)
    ]
    return pytrees.unflatten(spec, read)


def block_until_ready(x: T) -> T:
    """Waits until every array in a pytree is ready, and returns the pytree.

    Raises the error of a computation that failed to make one. Ignores other leaves.

    >>> plugrt.block_until_ready(xp.asarray([1, 2]))
    Array([1, 2], dtype=int32)
    """
    if type(x) is Array:
        return x.block_until_ready()  # type: ignore[attr-defined,no-any-return]
    if core is not None and not listening:  # to call each listener
        found = core.collect_held(x)
        if found is not None and await_held(*found):
            return x
    arrays = [leaf for leaf in pytrees.flatten(x)[0] if isinstance(leaf, Array)]
    if len(arrays) > 1 and not listening:
        held = ((array._aval, array._shards) for array in arrays)
        if await_together(held):
            return x
    for array in arrays:
        array.block_until_ready()
    return x


@with_argument_errors
def copy_to_host_async(x: T) -> T:
    """Begins to copy every array in a pytree to the host, and returns the pytree.

    A later read waits for the rest. Leaves without a method ``copy_to_host_async`` are passed
    over. As ``jax.copy_to_host_async``. Raises `DeletedBuffer` for an array that was deleted.

    >>> plugrt.copy_to_host_async({"a": xp.asarray([1, 2])})
    {'a': Array([1, 2], dtype=int32)}
    """
    for leaf in pytrees.flatten(x)[0]:
        if hasattr(leaf, "copy_to_host_async"):
            leaf.copy_to_host_async()
    return x


def _unpickle(host: npt.NDArray[np.generic], dtype: KeyDtype | None = None) -> Array:
    x: Array = device_put(host)
    if dtype is not None:
        x = keys_over(x, dtype, x.sharding)
    return x


def _pickle(x: Array) -> tuple[Any, tuple[object, ...]]:
    if is_of_keys(x._aval):
        return _unpickle, (np.asarray(x._words()), x.dtype)
    return _unpickle, (np.asarray(x),)


# Registered here, since this module can put the contents on a device again.
copyreg.pickle(Array, _pickle)
