"""Puts host arrays whole on devices, and moves arrays to one device."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from plugrt.execution.arrays.array import Array, new_array
from plugrt.execution.arrays.array_making import (
    array_on,
    change_layout,
    share_buffers,
    share_parts,
    through_words,
)
from plugrt.execution.arrays.aval import intern_aval, is_of_keys
from plugrt.execution.shardings.gspmd_sharding import replicate
from plugrt.execution.shardings.sharding_base import Sharding, SingleDeviceSharding
from plugrt.execution.shardings.tiled_sharding import TiledSharding
from plugrt.execution.transfers.exchanges import exchange, has_own_buffers
from plugrt.execution.transfers.sharded_transfer import gather, put_sharded
from plugrt.interface import Device, HostBufferSemantics

_COPY = HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
_ALIAS = HostBufferSemantics.IMMUTABLE_ZERO_COPY


def put(
    host: npt.NDArray[Any],
    device: Device,
    committed: bool,
    weak: bool = False,
    semantics: HostBufferSemantics = _COPY,
) -> Array:
    """Puts a host array, a result of `host_array`, on ``device``."""
    client = device.client
    if semantics is _COPY:
        [shards] = client.shards_from_host((host,), device)
    else:
        shards = client.shards((client.buffer_from_host(host, device, None, semantics),))
    sharding = SingleDeviceSharding(device)
    return new_array(shards, intern_aval(host.shape, host.dtype, sharding, committed, weak))


def put_whole(
    host: npt.NDArray[Any], sharding: Sharding, committed: bool, weak: bool = False
) -> Array:
    """Puts a host array whole on each device of a sharding."""
    if isinstance(sharding, SingleDeviceSharding) and sharding.memory_kind is None:
        return put(host, sharding.device, committed, weak)
    aval = intern_aval(host.shape, host.dtype, sharding, committed, weak)
    return new_array(put_sharded(host, sharding)._live(), aval)


def beside(sharding: Sharding) -> Sharding:
    """Returns the replicated sharding of host values in operations with a sharded array."""
    if isinstance(sharding, TiledSharding):
        return replicate(sharding)
    return SingleDeviceSharding(sharding.devices[0])


def put_beside(host: npt.NDArray[Any], sharding: Sharding, committed: bool) -> Array:
    """Puts a host array whole on the devices of a sharded operand."""
    return put_whole(host, beside(sharding), committed)


def move(x: Array, device: Device, committed: bool) -> Array:
    """Moves ``x`` to ``device``: shares its buffers if it is there, joins its parts if divided.

    Deleting or donating ``x`` keeps shared buffers. A moved array has the default layout. Copies
    from device to device if the backends support it, else through the host. Raises `NotAnArray` if
    parts of it are in other processes.
    """
    held, here, old = x._held(), SingleDeviceSharding(device), x._aval
    if is_of_keys(old):
        return through_words(x, here, lambda words: move(words, device, committed))
    if x.sharding is here:
        kept = intern_aval(old.shape, old.dtype, here, committed, old.weak, old.layout)
        return x if kept is old else share_buffers(x, kept)
    if old.layout is not None:
        x = change_layout(x, None)
        held = x._held()
    buffers = exchange(x, here)
    if buffers is None:
        return put(gather(x), device, committed, x._aval.weak, semantics=_ALIAS)
    made = array_on(buffers[0], committed, x._aval.weak)
    return share_parts(made, x, held) if has_own_buffers(x, here) else made
