"""Converts host arrays to sharded arrays (`put_sharded`), and back (`gather`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from plugrt.base.aligned_arrays import allocate_aligned
from plugrt.base.bounded_cache import BoundedCache
from plugrt.errors import NotAnArray
from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.array_making import array_of_shards, change_layout
from plugrt.execution.placement.default_device import require_addressable
from plugrt.execution.shardings.replica_sharding import ReplicaSharding
from plugrt.execution.shardings.sharding_base import Index, Sharding
from plugrt.interface import Buffer, Device, HostBufferSemantics, Layout

_places: BoundedCache[tuple[Sharding, tuple[int, ...]], tuple[Sequence[Device], list[Index]]]
_places = BoundedCache(1024)
_COPY = HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL


def put_sharded(
    host: npt.NDArray[np.generic],
    sharding: Sharding,
    weak: bool = False,
    layout: Layout | None = None,
    semantics: HostBufferSemantics = _COPY,
) -> Array:
    """Puts the parts of a host array on the devices of a sharding.

    Each process puts the parts of its devices; the data must be equal in all processes. Each part
    has the layout ``layout``, None for the default. If devices hold terms of a sum, the first term
    is the part, and the others are zeros. Raises `ShapeError` if the sharding does not divide the
    shape.
    """
    devices, indices = find_places(sharding, host.shape)
    parts = [np.asarray(host[index]) for index in indices]
    tiling = sharding.tiling(host.ndim)
    if tiling is not None and tiling.terms:
        term_of = dict(zip(sharding.devices, tiling.terms, strict=True))
        pairs = zip(devices, parts, strict=True)
        parts = [np.zeros_like(part) if term_of[device] else part for device, part in pairs]
    return put_parts(host.shape, sharding, devices, parts, weak, layout, semantics)


def put_parts(
    shape: tuple[int, ...],
    sharding: Sharding,
    devices: Sequence[Device],
    parts: Sequence[npt.NDArray[np.generic]],
    weak: bool = False,
    layout: Layout | None = None,
    semantics: HostBufferSemantics = _COPY,
) -> Array:
    """Puts one part on each device of this process, in order; returns the array.

    If the backend cannot put arrays in the layout, it copies them to that layout afterwards.
    """
    client, dtype = devices[0].client, parts[0].dtype
    if layout is None or not client.capabilities.layout_put:
        shards = client.buffers_from_host(parts, devices, sharding.memory_kind, semantics)
        return change_layout(array_of_shards(shape, dtype, sharding, shards, weak), layout)
    buffers = [
        client.buffer_from_host(part, device, None, semantics, layout)
        for part, device in zip(parts, devices, strict=True)
    ]
    layout = buffers[0].layout
    return array_of_shards(shape, dtype, sharding, client.shards(buffers), weak, layout)


def find_places(sharding: Sharding, shape: tuple[int, ...]) -> tuple[Sequence[Device], list[Index]]:
    """Returns the devices of this process, and the part of an array on each."""
    key = sharding, shape
    return _places.get(key) or _places.get_or_make(key, lambda: _find_places(*key))


def _find_places(
    sharding: Sharding, shape: tuple[int, ...]
) -> tuple[Sequence[Device], list[Index]]:
    sharding.check_shape(shape)
    where = sharding._places(shape)
    devices = sharding.addressable_devices
    if not devices:
        require_addressable(sharding.devices[0], f"{sharding!r}")
    return devices, [where[device] for device in devices]


def gather(x: Array) -> npt.NDArray[np.generic]:
    """Returns the contents of an array on several devices as a host array that never changes.

    It is aligned so that a backend on the host's memory can use it without another copy. Raises
    `NotAnArray` if parts of it are in other processes.
    """
    shards = x._live()
    if not x.sharding.is_fully_addressable:
        raise NotAnArray(
            f"{x._aval} has parts in other processes, so that it cannot be gathered here; "
            "read .addressable_shards, or plugrt.process_allgather(x, tiled=True) in all processes"
        )
    if type(x.sharding) is ReplicaSharding:
        return x.sharding.read(shards)
    parts = x.sharding.distinct_parts(x.shape)
    for i, _ in parts:
        shards[i].copy_to_host_async()
    host = allocate_aligned(x.shape, x.dtype)
    for i, index in parts:
        host[index] = shards[i].to_host()
    return host


def join(x: Array, sharding: Sharding, buffers: list[Buffer]) -> Array:
    """Returns the contents of ``x`` from these buffers, one for each device of the sharding."""
    shards = buffers[0].device.client.shards(buffers)
    return array_of_shards(x.shape, x.dtype, sharding, shards, x._aval.weak)
