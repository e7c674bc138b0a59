"""`device_put_sharded` and `device_put_replicated`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from plugrt.errors import ArgumentError, ArgumentTypeError, ShapeError, StructureError
from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.array_making import share_buffers
from plugrt.execution.arrays.aval import intern_aval
from plugrt.execution.arrays.host_data import host_array
from plugrt.execution.shardings.named_sharding import NamedSharding
from plugrt.execution.shardings.pmap_sharding import divide_axis
from plugrt.execution.transfers.array_parts import make_array_from_single_device_arrays
from plugrt.execution.transfers.sharded_transfer import put_sharded
from plugrt.execution.transfers.transfer import device_put
from plugrt.execution.trees import pytrees
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import Device, TensorType
from plugrt.transforms.pmap_axes import insert_axis


@with_argument_errors
def device_put_sharded(shards: Sequence[object], devices: Sequence[Device]) -> Any:
    """Returns pytrees of equal structure, one for each device, as one pytree of sharded arrays.

    Each array has a leading dimension of ``len(devices)``, divided over them as arguments of
    `pmap` are. As JAX's function of that name. Raises `ArgumentTypeError` unless ``shards`` are a
    sequence, `ArgumentError` where there are not as many as devices, and `StructureError` or
    `ShapeError` where two shards differ.

    >>> plugrt.device_put_sharded([xp.asarray(1), xp.asarray(2)], plugrt.devices()[:2])
    Array([1, 2], dtype=int32)
    """
    if not isinstance(shards, Sequence):  # as JAX, which would use an array's rows or a dict's keys
        raise ArgumentTypeError(
            f"device_put_sharded takes a sequence of shards, one for each device; got "
            f"{type(shards).__name__}: make a list of them"
        )
    if len(shards) != len(devices) or not len(devices):
        raise ArgumentError(
            f"device_put_sharded takes one shard for each device; got {len(shards)} shards for "
            f"{len(devices)} devices"
        )
    flat = [pytrees.flatten(shard) for shard in shards]
    spec = flat[0][1]
    for i, (_, other) in enumerate(flat):
        if other != spec:
            raise StructureError(f"shards 0 and {i} differ in structure: {spec} and {other}")
    rows = zip(*[leaves for leaves, _ in flat], strict=True)
    return pytrees.unflatten(spec, [_stack(row, divide_axis(devices, 0)) for row in rows])


def _stack(row: Sequence[object], to: NamedSharding) -> Array:
    parts = [x if type(x) is Array else host_array(x) for x in row]
    types = [TensorType(x.shape, x.dtype) for x in parts]
    for i, found in enumerate(types):
        if found != types[0]:
            raise ShapeError(f"shards 0 and {i} differ in type: {types[0]} and {found}")
    if not any(type(x) is Array for x in parts):
        return put_sharded(np.stack(parts), to)
    placed = [
        device_put(insert_axis(x) if type(x) is Array else x[None], device)
        for x, device in zip(parts, to.devices, strict=True)
    ]
    return make_array_from_single_device_arrays((len(row), *types[0].shape), to, placed)


@with_argument_errors
def device_put_replicated(x: object, devices: Sequence[Device]) -> Any:
    """Returns a pytree with a copy of each array on every device, along a new leading dimension.

    It is divided as arguments of `pmap` are. As JAX's function of that name.

    Raises `InvalidArgument` unless ``devices`` are devices, and as `device_put`.

    >>> plugrt.device_put_replicated(xp.asarray([1, 2]), plugrt.devices()[:2]).shape
    (2, 2)
    """
    if not len(devices):
        raise ArgumentError("device_put_replicated takes at least one device; got none")
    first = pytrees.map(lambda x: insert_axis(x) if type(x) is Array else host_array(x)[None], x)
    apart = divide_axis(devices, 0)

    def spread(placed: Array) -> Array:
        shape = apart.whole_shape(placed.shape)
        return share_buffers(placed, intern_aval(shape, placed.dtype, apart, True))

    return pytrees.map(spread, device_put(first, divide_axis(devices, None)))
