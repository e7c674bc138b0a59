"""`device_put_sharded` and `device_put_replicated`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plugrt.argument_errors import with_argument_errors
from plugrt.errors import ArgumentError, ShapeError, StructureError
from plugrt.execution import tree
from plugrt.execution.array import Array, array_of_shards
from plugrt.execution.sharded_transfer import join
from plugrt.execution.sharding import PmapSharding
from plugrt.execution.transfer import device_put, host_array, move, put
from plugrt.interface import Device


@with_argument_errors
def device_put_sharded(shards: Sequence[Any], devices: Sequence[Device]) -> Any:
    """Returns pytrees of equal structure, one for each device, as one pytree of sharded arrays.

    Each array has a leading dimension of ``len(devices)`` and `PmapSharding`: `pmap` takes it
    without a copy. As JAX's function of that name. Raises `ArgumentError` where there are not as
    many shards as devices, and `StructureError` or `ShapeError` where two shards differ.

    >>> plugrt.device_put_sharded([xp.asarray(1), xp.asarray(2)], plugrt.devices()[:2])
    Array([1, 2], dtype=int32)
    """
    if len(shards) != len(devices) or not len(devices):
        raise ArgumentError(
            f"device_put_sharded takes one shard for each device; got {len(shards)} shards for "
            f"{len(devices)} devices"
        )
    flat = [tree.flatten(shard) for shard in shards]
    spec = flat[0][1]
    for i, (_, other) in enumerate(flat):
        if other != spec:
            raise StructureError(f"shards 0 and {i} differ in structure: {spec} and {other}")
    to = PmapSharding(devices)
    rows = zip(*[leaves for leaves, _ in flat], strict=True)
    return tree.unflatten(spec, [_stack(row, to) for row in rows])


def _stack(row: Sequence[Any], to: PmapSharding) -> Array:
    parts = [
        move(x, device, True) if type(x) is Array else put(host_array(x), device, True)
        for x, device in zip(row, to.devices, strict=True)
    ]
    first = parts[0]._signature.tensor_type
    for i, part in enumerate(parts):
        if part._signature.tensor_type != first:
            found = part._signature.tensor_type
            raise ShapeError(f"shards 0 and {i} differ in type: {first} and {found}")
    return join((len(parts), *first.shape), first.dtype, to, [p._live()[0] for p in parts])


@with_argument_errors
def device_put_replicated(x: Any, devices: Sequence[Device]) -> Any:
    """Returns a pytree with each array once on every device, along a new leading dimension.

    The arrays have `PmapSharding`: `pmap` takes them without a copy. As JAX's function of that
    name.

    >>> plugrt.device_put_replicated(xp.asarray([1, 2]), plugrt.devices()[:2]).shape
    (2, 2)
    """
    if not len(devices):
        raise ArgumentError("device_put_replicated takes at least one device; got none")
    whole, apart = PmapSharding(devices, None), PmapSharding(devices)
    leaves, spec = tree.flatten(device_put(x, whole))
    result = []
    for placed in leaves:
        shape = (len(devices), *placed.shape)
        result.append(array_of_shards(shape, placed.dtype, apart, placed._live()))
    return tree.unflatten(spec, result)
