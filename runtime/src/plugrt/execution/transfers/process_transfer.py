"""`transfer`: copies arrays to devices of other processes, part by part, without the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from plugrt.base.bounded_cache import BoundedCache
from plugrt.distributed.agreement import require_agreement
from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.array_making import array_of_shards, share_parts
from plugrt.execution.compilation.buffer_copy import copy_buffer
from plugrt.execution.shardings.sharding_base import Sharding
from plugrt.interface import Device, TensorType
from plugrt.stablehlo.element_names import tensor_name

_Key = tuple[tuple[int, ...], np.dtype[np.generic], Sharding, Sharding]


@dataclass(frozen=True, slots=True)
class TransferPlan:
    """The source of each part of an array: ``sources`` has a device for each target device."""

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    source: Sharding
    target: Sharding
    sources: tuple[Device, ...]

    @property
    def remote(self) -> list[tuple[Device, Device]]:
        """The copies from one process to another, in the same order in all processes."""
        pairs = zip(self.sources, self.target.devices, strict=True)
        return [(a, b) for a, b in pairs if a.process_index != b.process_index]


_plans: BoundedCache[_Key, tuple[TransferPlan | None]] = BoundedCache(256)


def plan_transfer(
    shape: tuple[int, ...], dtype: np.dtype[np.generic], source: Sharding, target: Sharding
) -> TransferPlan | None:
    """Plans how to move an array with parts in other processes to other devices, part by part.

    Returns None if a device needs data that no device has as one part; and if ``source`` is in one
    process that also has devices of ``target``: then the array is that process's own value, and
    each process has one. Raises `DistributedError`, in all processes of the run, if they request
    different transfers.
    """
    key = (shape, dtype, source, target)
    return _plans.get_or_make(key, lambda: (_plan(*key),))[0]


def _plan(
    shape: tuple[int, ...], dtype: np.dtype[np.generic], source: Sharding, target: Sharding
) -> TransferPlan | None:
    owners = {device.process_index for device in source.devices}
    if len(owners) == 1 and owners <= {d.process_index for d in target.devices}:
        return None
    held = source.devices_indices_map(shape)
    sources = []
    for device, part in target.devices_indices_map(shape).items():
        having = [d for d in source.devices if held[d] == part]
        if not having:
            return None
        near = (d for d in having if d.process_index == device.process_index)
        sources.append(device if device in having else next(near, having[0]))
    plan = TransferPlan(shape, dtype, source, target, tuple(sources))
    if plan.remote:
        require_agreement(
            f"copying {tensor_name(shape, dtype)}",
            f"from devices {[d.id for d in source.devices]} to {[d.id for d in target.devices]}",
            (device.process_index for device in source.devices[0].client.devices()),
            "All processes of the run copy the same arrays, in the same order; one that has none "
            "of an array's devices has it, without parts, from "
            "plugrt.make_array_from_single_device_arrays(shape, sharding, [], dtype=...)",
        )
    return plan


def transfer(x: Array, plan: TransferPlan, *, share: bool = True) -> Array:
    """Returns ``x`` on the plan's target devices; with ``share``, parts in place are shared.

    The result has no parts in a process without target devices. All processes of the run must call
    it. Raises `FailedPrecondition`, which names the setting, if the backend is not set up to copy
    between processes.
    """
    target, kind = plan.target, plan.target.memory_kind
    expected = target.shard_shape(plan.shape)
    before = x._held()
    held = {buffer.device: buffer for buffer in x._live()}
    found: dict[Device, Any] = {}
    for source, device in zip(plan.sources, target.devices, strict=True):
        if device.is_addressable and source in held:
            buffer = held[source]
            memory = device.memory(kind) if kind else None
            stays = share and source is device and plan.source.memory_kind == kind
            found[device] = buffer if stays else copy_buffer(buffer, device, memory)
    if remote := plan.remote:
        made = device.client.copy_between_processes(
            TensorType(expected, plan.dtype),
            remote,
            [held[source] for source, _ in remote if source.is_addressable],
            kind,
        )
        arriving = [device for _, device in remote if device.is_addressable]
        found |= dict(zip(arriving, made, strict=True))
    devices = target.addressable_devices
    shards = devices[0].client.shards([found[device] for device in devices]) if devices else ()
    result = array_of_shards(plan.shape, plan.dtype, target, shards, x._aval.weak)
    kept = any(found[device] is held.get(device) for device in devices)
    return share_parts(result, x, before) if kept else result
