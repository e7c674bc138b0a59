"""`device_put`, `device_get` and the transfers below them."""

from __future__ import annotations

import copyreg
import math
import time
from typing import Any, TypeVar, overload

import numpy as np
import numpy.ma
import numpy.typing as npt

from plugrt import monitoring
from plugrt.argument_errors import require_flag
from plugrt.compiled_core import KNOWN_DTYPES
from plugrt.errors import InvalidArgument, NotAnArray, ShapeError, Unimplemented
from plugrt.execution import tree
from plugrt.execution.agreements import agree_on_data
from plugrt.execution.array import Array, duplicate, new_array
from plugrt.execution.array_layouts import change_layout
from plugrt.execution.array_making import array_on
from plugrt.execution.default_device import default_device, gather_device
from plugrt.execution.deletion import Deletion
from plugrt.execution.divided import is_divided, replicate
from plugrt.execution.exchanges import exchange, moved_bytes
from plugrt.execution.format import Format
from plugrt.execution.host_data import host_array
from plugrt.execution.put_target import Space, Target, is_target, read_target, require_here, spread
from plugrt.execution.quick_puts import keep_put, put_quickly
from plugrt.execution.relayout import other_layout
from plugrt.execution.resharding import reshard
from plugrt.execution.sharded_transfer import gather, put_sharded
from plugrt.execution.sharding import (
    PmapSharding,
    Sharding,
    SingleDeviceSharding,
    default_memory_kind,
)
from plugrt.execution.signature import intern_signature
from plugrt.execution.transfer_guard import check_transfer
from plugrt.execution.waiting import await_together
from plugrt.interface import Device, HostBufferSemantics, TensorType
from plugrt.monitoring.listeners import listening
from plugrt.settings.declarations import config
from plugrt.traceback_filter import with_user_frames
from plugrt.typing import ArrayLike, Container, PutTarget

T = TypeVar("T")
_NUMBERS = (bool, int, float, complex, *(d.type for d in KNOWN_DTYPES))
_KEPT = frozenset((list, tuple, dict, Array, *_NUMBERS))
"""The classes, beside NumPy's arrays, of what may be put quickly the next time."""
_COPY = HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
_ALIAS = HostBufferSemantics.IMMUTABLE_ZERO_COPY


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
    src: Any = None,
    donate: Any = False,
    may_alias: Any = None,
) -> Any:
    """Returns ``x`` (an array, a scalar, or a pytree of them) as `Array` where ``device`` says.

    That is a device, a sharding, also one of another memory (``memory_kind="pinned_host"``), a
    `plugrt.layout.Format`, a `plugrt.memory.Space`, a `PartitionSpec` over the mesh in the context,
    or a pytree of these that is a prefix of ``x``. The result is then committed to it; with None,
    arrays stay where they are and host data go to the default device, uncommitted, as in JAX. All
    host data for one device are one call to its backend.

    ``donate`` releases the source's memory. ``may_alias`` True lets a host array be used without a
    copy where its memory is aligned: from then on it must never change. False forces a copy of
    arrays too. None copies host data, and shares the memory of arrays, which never change. Both
    may be pytrees that are prefixes of ``x``. ``src`` is where ``x`` is, which arrays know: it is
    checked and not used.

    Within a traced function, a memory (as a Space, or as a sharding's) is where the value is if it
    is a result of the outermost call; devices and layouts of traced arrays are ignored, as in JAX:
    the arguments of that call decide where a program runs.

    Where processes share the devices of a sharding, all call it with the same host data; an array
    may go to another sharding over the same devices (docs/processes.md).

    Raises `NotAnArray` with the path of what is not an array, `StructureError` for a pytree that
    is no prefix, `Unimplemented` for layouts and memories that the backend lacks,
    `InvalidArgument` for a device of another process, and `DistributedError` for data that differ.

    >>> plugrt.device_put({"bias": 1.5}, plugrt.devices()[0])
    {'bias': Array(1.5, dtype=float32)}
    """
    if donate is False and src is None and may_alias is None and not listening:
        put = put_quickly(x, device)
        if put is not None:
            return put
    if config.token().guarded:
        _check_puts(x, device)
    start = time.perf_counter() if listening else 0.0
    if type(x) is np.ndarray and donate is False and src is None and is_target(device):
        # An array by itself is the usual case.
        if may_alias is not None:
            require_flag("device_put", "may_alias", may_alias, optional=True)
        result = _put_host(x, read_target(device), may_alias)
        if may_alias is None:
            keep_put(x, device, result)
        moved = _bytes_of_move(x, result, may_alias) if listening else 0
    else:
        result, moved = _put_tree(x, device, src, donate, may_alias)
        plain = donate is False and src is None and may_alias is None
        if plain and type(x) in _KEPT:
            keep_put(x, device, result)
    if start:
        seconds = time.perf_counter() - start
        monitoring.record_event_duration_secs(monitoring.DEVICE_PUT, seconds, bytes=moved)
    return result


def _check_puts(x: Any, device: Any) -> None:
    """Has the transfer guard look at what `device_put` is asked for."""
    leaves = tree.flatten(x)[0]
    targets = spread(device, x, len(leaves), "device", is_target)
    for leaf, target in zip(leaves, targets, strict=True):
        there = _sharding_of(read_target(target), leaf)
        if type(leaf) is Array:
            if there is not None and leaf.sharding != there:
                what = f"{leaf._signature.tensor_type}, from {leaf.sharding!r} to {there!r}"
                check_transfer("device_to_device", what, explicit=True)
        elif not isinstance(leaf, Array):
            what = f"{leaf!r:.40}, to {there or default_device()!r}"
            check_transfer("host_to_device", what, explicit=True)


def _sharding_of(to: Target, leaf: Any) -> Sharding | None:
    if isinstance(to, Space):
        return _space_of(leaf, to) if type(leaf) is Array else to.on(default_device())
    if isinstance(to, Format):
        return to.sharding
    return SingleDeviceSharding(to) if isinstance(to, Device) else to


def _put_tree(x: Any, device: Any, src: Any, donate: Any, may_alias: Any) -> tuple[Any, int]:
    """Returns the pytree of arrays, and the bytes that were put, copied or moved for it."""
    leaves, spec = tree.flatten(x)
    count = len(leaves)
    targets = [read_target(t) for t in spread(device, x, count, "device", is_target)]
    for where in spread(src, x, count, "src", is_target):
        read_target(where)
    donated = _spread_flags(donate, x, count, "donate")
    aliasing = _spread_flags(may_alias, x, count, "may_alias")
    for one, other in zip(donated, aliasing, strict=True):
        if one and other:
            raise InvalidArgument(
                "device_put takes donate=True or may_alias=True, not both: what is donated is gone"
            )
    results: list[Any] = [None] * count
    heard = bool(listening)
    before = [getattr(leaf, "_shards", None) for leaf in leaves if heard]
    hosts: dict[Device | None, list[tuple[int, npt.NDArray[Any]]]] = {}
    try:
        for i, (leaf, to, alias) in enumerate(zip(leaves, targets, aliasing, strict=True)):
            if type(leaf) is Array:
                results[i] = _put_array(leaf, to, alias)
            elif isinstance(leaf, Array):
                results[i] = _place_tracer(leaf, to)
            elif alias or not (to is None or isinstance(to, Device)):
                results[i] = _put_host(leaf, to, alias)
            else:
                hosts.setdefault(to, []).append((i, host_array(leaf)))
    except NotAnArray:
        for path, leaf in tree.flatten_with_paths(x):  # the error with its path
            if not isinstance(leaf, Array):
                host_array(leaf, f"the value at {path}" if path else "the value")
        raise
    except ShapeError as error:
        path = tree.flatten_with_paths(x)[i][0]
        raise ShapeError(f"the value at {path}: {error}" if path else str(error)) from None
    for target, numbered in hosts.items():
        require_here(target)
        _put_together(numbered, leaves, target, results)
    for leaf, result, gone in zip(leaves, results, donated, strict=True):
        if gone and type(leaf) is Array and result is not leaf:
            # Not deleted, since the result may share buffers; unshared ones are freed here.
            leaf._mark_lost(Deletion("device_put"))
    if not heard:
        return tree.unflatten(spec, results), 0
    made = [
        _bytes_of_move(leaf, a, alias)
        for leaf, a, old, alias in zip(leaves, results, before, aliasing, strict=True)
        if type(a) is Array and a._shards is not old
    ]
    return tree.unflatten(spec, results), sum(made)


def _bytes_of_move(source: Any, made: Array, alias: bool | None) -> int:
    """Returns how many bytes were put on this process's devices, copied or moved, for an array.

    Of one that was in other parts on devices, as many as went from one to another, unless all were
    to be copied, or to be in another memory.
    """
    to = made.sharding
    if type(source) is Array and alias is not False and source.sharding != to:
        same_memory = source.sharding.memory_kind == to.memory_kind
        if same_memory and (moved := moved_bytes(source, to)) is not None:
            return moved
    part = math.prod(to.shard_shape(made.shape)) * made.dtype.itemsize
    return part * len(to.addressable_devices)


def _spread_flags(prefix: Any, x: Any, count: int, name: str) -> list[Any]:
    flags = spread(prefix, x, count, name, lambda p: isinstance(p, bool | None))
    for flag in {id(flag): flag for flag in flags}.values():
        require_flag("device_put", name, flag, optional=name == "may_alias")
    return flags


def _put_together(
    numbered: list[tuple[int, npt.NDArray[Any]]],
    leaves: list[Any],
    target: Device | None,
    results: list[Any],
) -> None:
    """Puts host arrays on one device in one call, and sets the results of their numbers."""
    device = target or default_device()
    here, committed = SingleDeviceSharding(device), target is not None
    put_all = device.client.shards_from_host([host for _, host in numbered], device)
    for (i, host), shards in zip(numbered, put_all, strict=True):
        weak = type(leaves[i]) in (bool, int, float, complex)
        signature = intern_signature(host.shape, host.dtype, here, committed, weak)
        results[i] = new_array(shards, signature)


def _put_host(x: Any, to: Target, may_alias: bool | None) -> Array:
    host = host_array(x)
    weak = type(x) in (bool, int, float, complex)  # as in JAX, wherever they are put
    require_here(to)
    if isinstance(to, Space):
        to = to.on(default_device())
        if to.memory_kind is None:
            to = to.device
    if isinstance(to, Sharding):
        agree_on_data(host, to)
        return put_sharded(host, to, weak)
    semantics = _ALIAS if may_alias else _COPY
    if isinstance(to, Format):
        return _put_in_layout(host, to, semantics)
    return put(host, to or default_device(), to is not None, weak, semantics)


def _put_in_layout(host: npt.NDArray[Any], to: Format, semantics: HostBufferSemantics) -> Array:
    """Returns a host array in a layout: put so where the backend can, else copied there."""
    device, layout = to.sharding.devices[0], to.layout  # type: ignore[union-attr]
    tensor_type = TensorType(host.shape, host.dtype)
    other = other_layout(device, tensor_type, layout)  # type: ignore[arg-type]
    if other is None or not device.client.capabilities.layout_put:
        return change_layout(put(host, device, True, semantics=semantics), other)
    buffer = device.client.buffer_from_host(host, device, None, semantics, other)
    return array_on(buffer, True, layout=buffer.layout)


def _place_tracer(x: Any, to: Target) -> Any:
    """Returns a traced array in the memory, and over the devices, that a target names."""
    x._live()
    if isinstance(to, Space):
        return x.in_memory("pinned_host" if to is Space.Host else None)
    if isinstance(to, SingleDeviceSharding | Device):
        return x.in_memory(to.memory_kind if isinstance(to, Sharding) else None)
    if isinstance(to, Sharding) and is_divided(to):
        return x.constrained(to, "device_put").in_memory(to.memory_kind)
    return x


def _put_array(x: Array, to: Target, may_alias: bool | None) -> Array:
    held = x._held()
    if isinstance(to, Space):
        to = _space_of(x, to)
    layout = x._signature.layout
    if isinstance(to, Format) or not x.committed:
        require_here(to)
    if isinstance(to, Device) and not (to.is_addressable and x.sharding.addressable_devices):
        to = SingleDeviceSharding(to)  # from or to another process
    if isinstance(to, Format):
        there = SingleDeviceSharding(to.sharding.devices[0])  # type: ignore[union-attr]
        result = x if x.sharding is there and x.committed else move(x, there.device, True)
        shape = TensorType(x.shape, x.dtype)
        other = other_layout(there.device, shape, to.layout)  # type: ignore[arg-type]
        result = change_layout(result, other)
    elif to is None or x.sharding == to:
        result = x
    elif isinstance(to, Sharding):
        result = reshard(change_layout(x, None), to, share=may_alias is not False)
    else:
        result = move(x, to, True)
        if layout is not None and to.client.capabilities.layouts:
            result = change_layout(result, layout)
    if may_alias is False and result._shards is held:
        result = new_array(duplicate(x)._shards or (), result._signature)
    return result


def _space_of(x: Array, space: Space) -> Sharding:
    sharding = x.sharding
    if isinstance(sharding, SingleDeviceSharding):
        return space.on(sharding.device)
    if isinstance(sharding, PmapSharding):
        raise Unimplemented(
            f"device_put to {space} of an array as pmap divides them ({sharding!r}), which are in "
            "the devices' default memory; put it with a NamedSharding first"
        )
    if space is Space.Device:
        kind = default_memory_kind(sharding.devices)
        return sharding if kind is None else sharding.with_memory_kind(kind)
    return sharding.with_memory_kind("pinned_host")


def put(
    host: npt.NDArray[Any],
    device: Device,
    committed: bool,
    weak: bool = False,
    semantics: HostBufferSemantics = _COPY,
) -> Array:
    """Returns a host array that `host_array` gave as an array on ``device``."""
    client = device.client
    if semantics is _COPY:
        [shards] = client.shards_from_host((host,), device)
    else:
        shards = client.shards((client.buffer_from_host(host, device, None, semantics),))
    sharding = SingleDeviceSharding(device)
    return new_array(shards, intern_signature(host.shape, host.dtype, sharding, committed, weak))


def put_whole(
    host: npt.NDArray[Any], sharding: Sharding, committed: bool, weak: bool = False
) -> Array:
    """Returns a host array as an array that each device of a sharding has whole."""
    if isinstance(sharding, SingleDeviceSharding) and sharding.memory_kind is None:
        return put(host, sharding.device, committed, weak)
    signature = intern_signature(host.shape, host.dtype, sharding, committed, weak)
    return new_array(put_sharded(host, sharding)._live(), signature)


def beside(sharding: Sharding) -> Sharding:
    """Returns where host values go that meet an array with a sharding: whole on its devices.

    Beside one that computations gather, on the device where they do.
    """
    if is_divided(sharding):
        return replicate(sharding)
    return SingleDeviceSharding(gather_device(sharding))


def put_beside(host: npt.NDArray[Any], sharding: Sharding, committed: bool) -> Array:
    """Returns a host array whole where arrays with a sharding are computed with."""
    return put_whole(host, beside(sharding), committed)


def move(x: Array, device: Device, committed: bool) -> Array:
    """Returns ``x`` on ``device``: the same buffers if it is there, put together if it is in parts.

    What is moved has the default layout. Goes from device to device where the backends can do
    that, else through the host. Raises `NotAnArray` where parts of it are in other processes.
    """
    shards, here, old = x._live(), SingleDeviceSharding(device), x._signature
    if x.sharding is here:
        kept = intern_signature(old.shape, old.dtype, here, committed, old.weak, old.layout)
        return x if kept is old else new_array(shards, kept)
    if old.layout is not None:
        x = change_layout(x, None)
    buffers = exchange(x, here)
    if buffers is None:
        return put(gather(x), device, committed, x._signature.weak, semantics=_ALIAS)
    return array_on(buffers[0], committed, x._signature.weak)


@overload
def device_get(x: Array) -> npt.NDArray[Any]: ...
@overload
def device_get(x: Any) -> Any: ...
def device_get(x: Any) -> Any:
    """Returns a pytree with every array in it as a NumPy array (read-only where not copied).

    All copies to the host are begun before the first is waited for. Other leaves stay as they are.

    Raises the error of a computation that failed to make one.

    >>> plugrt.device_get({"x": xp.asarray([1, 2])})
    {'x': array([1, 2], dtype=int32)}
    """
    if not config.token().guarded:
        return _get(x)
    for leaf in tree.flatten(x)[0]:
        if type(leaf) is Array:
            leaf._check_read(explicit=True)
    with config.override(transfer_guard_device_to_host="allow"):
        return _get(x)


def _get(x: Any) -> Any:
    leaves, spec = tree.flatten(x)
    for leaf in leaves:
        if type(leaf) is Array:
            leaf.copy_to_host_async()
    return tree.unflatten(
        spec, [np.asarray(leaf) if isinstance(leaf, Array) else leaf for leaf in leaves]
    )


def block_until_ready(x: T) -> T:
    """Waits until every array in a pytree is there, and returns the pytree.

    Raises the error of a computation that failed to make one. Other leaves are passed over.

    >>> plugrt.block_until_ready(xp.asarray([1, 2]))
    Array([1, 2], dtype=int32)
    """
    if type(x) is Array:
        return x.block_until_ready()  # type: ignore[attr-defined,no-any-return]
    arrays = [leaf for leaf in tree.flatten(x)[0] if isinstance(leaf, Array)]
    if len(arrays) > 1 and not listening:  # who listens is told of each
        held = ((array._signature, array._shards) for array in arrays)
        if await_together(held):
            return x
    for array in arrays:
        array.block_until_ready()
    return x


def _unpickle(host: npt.NDArray[Any]) -> Array:
    x: Array = device_put(host)
    return x


def _pickle(x: Array) -> tuple[Any, tuple[npt.NDArray[Any]]]:
    return _unpickle, (np.asarray(x),)


# Said here, since only here it is known how the contents get on a device again.
copyreg.pickle(Array, _pickle)
