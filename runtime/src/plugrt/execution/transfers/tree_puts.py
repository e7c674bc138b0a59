"""Puts pytrees on pytrees of targets: the implementation of `device_put` for each leaf."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy.typing as npt

from plugrt.errors import InvalidArgument, NotAnArray, ShapeError
from plugrt.execution.arrays.arguments import is_weak
from plugrt.execution.arrays.array import Array, duplicate, new_array
from plugrt.execution.arrays.array_deletion import Deletion
from plugrt.execution.arrays.array_making import change_layout
from plugrt.execution.arrays.aval import intern_aval
from plugrt.execution.arrays.host_data import host_array
from plugrt.execution.executables.agreements import agree_on_data
from plugrt.execution.placement.default_device import default_device
from plugrt.execution.placement.put_target import (
    Space,
    Target,
    is_target,
    read_format,
    read_target,
    require_here,
    spread,
)
from plugrt.execution.shardings.format import Format
from plugrt.execution.shardings.named_sharding import NamedSharding
from plugrt.execution.shardings.partition_spec import PartitionSpec
from plugrt.execution.shardings.sharding_base import (
    Sharding,
    SingleDeviceSharding,
    default_memory_kind,
)
from plugrt.execution.shardings.tiled_sharding import TiledSharding
from plugrt.execution.transfers.exchanges import moved_bytes
from plugrt.execution.transfers.resharding import reshard
from plugrt.execution.transfers.sharded_transfer import put_sharded
from plugrt.execution.transfers.whole_arrays import move, put
from plugrt.execution.trees import pytrees
from plugrt.frames.argument_errors import require_flag
from plugrt.interface import Device, HostBufferSemantics
from plugrt.monitoring.listeners import listening

_ALIAS = HostBufferSemantics.IMMUTABLE_ZERO_COPY
# Process-wide: `plugrt.tracing` sets it when it is imported.
_lift: Callable[[object], Any] | None = None


def set_lift(lift: Callable[[object], Any]) -> None:
    """Sets the function that makes a tracer of a value, or returns None outside of traces.

    This package does not import packages that trace.
    """
    global _lift
    _lift = lift


def lift(x: object) -> Any:
    """Returns a tracer of a value, in the current ``trace``; None outside of traces.

    Numbers add no operation to the module.
    """
    return None if _lift is None else _lift(x)


def is_lifted(to: object) -> bool:
    """Whether a put to ``to`` becomes a part of the traced program; a put to a device does not."""
    return isinstance(to, Sharding | Space | PartitionSpec) and lift(0) is not None


def put_tree(
    x: object, device: object, src: object, donate: object, may_alias: object
) -> tuple[Any, int]:
    """Returns the pytree of arrays, and the number of bytes put, copied or moved for it."""
    leaves, spec = pytrees.flatten(x)
    count = len(leaves)
    asked = spread(device, x, count, "device", is_target)
    targets = [read_target(t) for t in asked]
    for where in spread(src, x, count, "src", is_target):
        read_target(where)
    donated = _spread_flags(donate, x, count, "donate")
    aliasing = _spread_flags(may_alias, x, count, "may_alias")
    for one, other in zip(donated, aliasing, strict=True):
        if one and other:
            raise InvalidArgument(
                "device_put takes donate=True or may_alias=True, not both: a donated array is "
                "deleted"
            )
    results: list[object] = [None] * count
    heard = bool(listening)
    before = [getattr(leaf, "_shards", None) for leaf in leaves if heard]
    hosts: dict[Device | None, list[tuple[int, npt.NDArray[Any]]]] = {}
    try:
        for i, (leaf, to, alias) in enumerate(zip(leaves, targets, aliasing, strict=True)):
            named = asked[i] if isinstance(asked[i], SingleDeviceSharding) else to
            if is_lifted(named):
                results[i] = _place_tracer(lift(leaf), named)
            elif type(leaf) is Array:
                results[i] = put_array(leaf, to, alias)
            elif isinstance(leaf, Array):
                results[i] = _place_tracer(leaf, named)
            elif alias or not (to is None or isinstance(to, Device)):
                results[i] = put_host(leaf, to, alias)
            else:
                hosts.setdefault(to, []).append((i, host_array(leaf)))
    except NotAnArray:
        for path, leaf in pytrees.flatten_with_paths(x):  # repeated for the error with the path
            if not isinstance(leaf, Array):
                host_array(leaf, f"the value at {path}" if path else "the value")
        raise
    except ShapeError as error:
        path = pytrees.flatten_with_paths(x)[i][0]
        raise ShapeError(f"the value at {path}: {error}" if path else str(error)) from None
    for target, numbered in hosts.items():
        require_here(target)
        _put_together(numbered, leaves, target, results)
    for leaf, result, gone in zip(leaves, results, donated, strict=True):
        if gone and type(leaf) is Array and result is not leaf:
            # Not deleted, since the result may share buffers; unshared ones are freed here.
            leaf._lose(Deletion("device_put"))
    if not heard:
        return pytrees.unflatten(spec, results), 0
    made = [
        bytes_of_move(leaf, a, alias)
        for leaf, a, old, alias in zip(leaves, results, before, aliasing, strict=True)
        if type(a) is Array and a._shards is not old
    ]
    return pytrees.unflatten(spec, results), sum(made)


def bytes_of_move(source: Any, made: Array, alias: bool | None) -> int:
    """Returns the number of bytes put on this process's devices, copied or moved, for an array.

    For an array with other parts on devices, counts only bytes that were copied from one device to
    another, unless all had to be copied, or put in another memory.
    """
    to = made.sharding
    if type(source) is Array and alias is not False and source.sharding != to:
        same_memory = source.sharding.memory_kind == to.memory_kind
        if same_memory and (moved := moved_bytes(source, to)) is not None:
            return moved
    part = math.prod(to.shard_shape(made.shape)) * made.dtype.itemsize
    return part * len(to.addressable_devices)


def _spread_flags(prefix: object, x: object, count: int, name: str) -> list[Any]:
    flags = spread(prefix, x, count, name, lambda p: isinstance(p, bool | None))
    for flag in {id(flag): flag for flag in flags}.values():
        require_flag("device_put", name, flag, optional=name == "may_alias")
    return flags


def _put_together(
    numbered: list[tuple[int, npt.NDArray[Any]]],
    leaves: list[object],
    target: Device | None,
    results: list[object],
) -> None:
    """Puts host arrays on one device in one call, and stores them by number in the results."""
    device = target or default_device()
    here, committed = SingleDeviceSharding(device), target is not None
    put_all = device.client.shards_from_host([host for _, host in numbered], device)
    for (i, host), shards in zip(numbered, put_all, strict=True):
        weak = _is_weak(leaves[i], host)
        aval = intern_aval(host.shape, host.dtype, here, committed, weak)
        results[i] = new_array(shards, aval)


def put_host(x: object, to: Target, may_alias: bool | None) -> Array:
    """Puts a host value on a target; raises `NotAnArray` for any other object."""
    host = host_array(x)
    weak = _is_weak(x, host)
    require_here(to)
    if isinstance(to, Space):
        to = to.on(default_device())
        if to.memory_kind is None:
            to = to.device
    if isinstance(to, Sharding):
        agree_on_data(host, to)
        return put_sharded(host, to, weak)
    semantics = _ALIAS if may_alias else HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
    if isinstance(to, Format):
        sharding, layout = read_format(to, host.shape, host.dtype)
        agree_on_data(host, sharding)
        return put_sharded(host, sharding, weak, layout, semantics)
    return put(host, to or default_device(), to is not None, weak, semantics)


def _is_weak(x: object, host: npt.NDArray[Any]) -> bool:
    """Whether the array of a value is weakly typed, as in JAX."""
    return type(x) in (bool, int, float, complex) or is_weak(x, host.dtype)


def _place_tracer(x: Any, to: Target) -> object:
    """Returns a traced array in a target's memory, and over its devices."""
    x._live()
    if isinstance(to, Space):
        return x.in_memory("pinned_host" if to is Space.Host else None)
    if isinstance(to, Device):
        return x.in_memory(None)
    if isinstance(to, NamedSharding):
        to.require_whole()
    if isinstance(to, SingleDeviceSharding | TiledSharding):
        return x.constrained(to, "device_put").in_memory(to.memory_kind)
    return x


def put_array(x: Array, to: Target, may_alias: bool | None) -> Array:
    """Puts an array on a target; may share its buffers unless ``may_alias`` is False."""
    held = x._held()
    if isinstance(to, Space):
        to = space_of(x, to)
    if isinstance(to, Format) or not x.committed:
        require_here(to)
    if isinstance(to, Device) and not (to.is_addressable and x.sharding.addressable_devices):
        to = SingleDeviceSharding(to)  # from or to another process
    if isinstance(to, Format):
        sharding, layout = read_format(to, x.shape, x.dtype)
        if isinstance(sharding, SingleDeviceSharding):
            result = move(x, sharding.device, True)
        else:
            result = reshard(x, sharding, share=may_alias is not False)
        result = change_layout(result, layout)
    elif to is None or x.sharding == to:
        result = x
    else:
        if isinstance(to, Sharding):
            result = reshard(x, to, share=may_alias is not False)
        else:
            result = move(x, to, True)
        if x._aval.layout and _keeps_layout(x.sharding, result.sharding):
            result = change_layout(result, x._aval.layout)
    if may_alias is False and result._shards is held:
        result = new_array(duplicate(x)._shards or (), result._aval)
    return result


def _keeps_layout(before: Sharding, after: Sharding) -> bool:
    """Whether arrays keep their layout when moved: from one device to one, as in JAX."""
    if before.num_devices > 1 or after.num_devices > 1 or after.memory_kind is not None:
        return False
    return after.devices[0].client.capabilities.layouts


def space_of(x: Array, space: Space) -> Sharding:
    """Returns the array's sharding with another memory."""
    sharding = x.sharding
    if isinstance(sharding, SingleDeviceSharding):
        return space.on(sharding.device)
    if space is Space.Device:
        kind = default_memory_kind(sharding.devices)
        return sharding if kind is None else sharding.with_memory_kind(kind)
    return sharding.with_memory_kind("pinned_host")
