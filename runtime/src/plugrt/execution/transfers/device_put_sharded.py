"""`device_put_sharded` and `device_put_replicated`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plugrt.errors import ArgumentError, ShapeError, StructureError
from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.array_making import array_of_shards, share_buffers, share_parts
from plugrt.execution.arrays.aval import intern_aval
from plugrt.execution.arrays.host_data import host_array
from plugrt.execution.shardings.sharding_base import PmapSharding
from plugrt.execution.transfers.transfer import device_put
from plugrt.execution.transfers.whole_arrays import move
from plugrt.execution.trees import tree
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import Device, Shards, TensorType


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
    hosts = {i: host_array(x) for i, x in enumerate(row) if type(x) is not Array}
    types = [_tensor_type(hosts.get(i, x)) for i, x in enumerate(row)]
    for i, found in enumerate(types):
        if found != types[0]:
            raise ShapeError(f"shards 0 and {i} differ in type: {types[0]} and {found}")
    there = [to.devices[i] for i in hosts]
    put = there[0].client.buffers_from_host([*hosts.values()], there) if hosts else ()
    buffers: Shards = put
    moved: list[tuple[Array, Any]] = []
    if len(hosts) < len(row):
        parts = dict(zip(hosts, put, strict=True))
        for i, x in enumerate(row):
            if i not in parts:
                moved.append((kept := move(x, to.devices[i], True), kept._held()))
                parts[i] = kept._live()[0]
        buffers = to.devices[0].client.shards([parts[i] for i in range(len(row))])
    made = array_of_shards((len(row), *types[0].shape), types[0].dtype, to, buffers)
    for kept, held in moved:
        share_parts(made, kept, held)
    return made


def _tensor_type(x: Any) -> TensorType:
    return TensorType(x.shape, x.dtype)


@with_argument_errors
def device_put_replicated(x: Any, devices: Sequence[Device]) -> Any:
    """Returns a pytree with each array once on every device, along a new leading dimension.

    The arrays have `PmapSharding`: `pmap` takes them without a copy. As JAX's function of that
    name.

    Raises `InvalidArgument` unless ``devices`` are devices, and as `device_put`.

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
        result.append(share_buffers(placed, intern_aval(shape, placed.dtype, apart, True)))
    return tree.unflatten(spec, result)
