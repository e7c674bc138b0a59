"""`reshard`: moves an array to another sharding, from device to device if possible."""

from __future__ import annotations

import numpy as np

from plugrt.base.bounded_cache import BoundedCache
from plugrt.errors import DeletedBuffer, DeviceMismatch
from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.array_making import (
    array_of_shards,
    change_layout,
    share_buffers,
    share_parts,
    through_words,
)
from plugrt.execution.arrays.aval import intern_aval, is_of_keys
from plugrt.execution.compilation.buffer_copy import copy_buffer
from plugrt.execution.compilation.compiler import compile_program, require_open_sums
from plugrt.execution.executables.agreements import agree_on_program
from plugrt.execution.executables.launch_log import LaunchLog
from plugrt.execution.placement.default_device import require_addressable
from plugrt.execution.shardings.gspmd_sharding import buffer_sharding, replicate
from plugrt.execution.shardings.named_sharding import NamedSharding
from plugrt.execution.shardings.replica_sharding import ReplicaSharding
from plugrt.execution.shardings.sharding_base import Sharding
from plugrt.execution.shardings.shardy_text import sharding_body, tiling_body
from plugrt.execution.shardings.tiling import Tiling
from plugrt.execution.transfers.exchanges import exchange, has_own_buffers
from plugrt.execution.transfers.process_transfer import plan_transfer, transfer
from plugrt.execution.transfers.sharded_transfer import join, put_sharded
from plugrt.interface import CompileOptions, DeviceAssignment, LoadedExecutable, Program, TensorType
from plugrt.settings.declarations import config
from plugrt.stablehlo.element_names import tensor_name


def reshard(x: Array, sharding: Sharding, *, share: bool = True) -> Array:
    """Returns ``x`` with another sharding; ``x`` itself if it has that.

    With ``share``, buffers that are already in place are shared, and stay valid if ``x`` is deleted
    or donated. If not all buffers are shared, the result has the default layout. Copies from device
    to device if the backends can do that, else through the host; between processes by one program
    over the same devices (see `reshard_globally`), and by copies to other devices (see `transfer`);
    all processes must call these.
    """
    if x.sharding == sharding:
        return x
    if is_of_keys(x._aval):
        sharding.check_shape(x.shape)
        where, _ = buffer_sharding(sharding, x.shape, x.dtype)
        return through_words(x, sharding, lambda words: reshard(words, where, share=share))
    if x._aval.layout and not (share and x.sharding.is_equivalent_to(sharding, x.ndim)):
        x = change_layout(x, None)
    if (x.sharding, sharding, x.ndim) not in _exchanged:
        if (moved := _move_otherwise(x, sharding, share)) is not None:
            return moved
        if share and x.sharding.is_fully_addressable and sharding.is_fully_addressable:
            _exchanged.keep((x.sharding, sharding, x.ndim), True)
    held = x._held()
    try:
        buffers = exchange(x, sharding, share=share)
        made = None if buffers is None else join(x, sharding, buffers)
    except DeletedBuffer as error:  # another thread deleted it meanwhile
        x._raise_deleted(error)
    if made is None:
        return put_sharded(np.asarray(x), sharding, x._aval.weak)
    return share_parts(made, x, held) if share and has_own_buffers(x, sharding) else made


_exchanged: BoundedCache[tuple[Sharding, Sharding, int], bool] = BoundedCache(512)
"""Pairs of shardings, with ranks: this process exchanges such arrays, and shares no buffers.

Cached, since the test costs as much as an exchange of small arrays.
"""


def _move_otherwise(x: Array, sharding: Sharding, share: bool) -> Array | None:
    """Returns an array that needs no exchange in this process; None for others."""
    if type(sharding) is ReplicaSharding and type(x.sharding) is ReplicaSharding:
        return _widen(x, sharding)
    sharding.check_shape(x.shape)
    if share and x.sharding.is_equivalent_to(sharding, x.ndim):
        aval = intern_aval(x.shape, x.dtype, sharding, True, x._aval.weak, x._aval.layout)
        return share_buffers(x, aval)
    if x.sharding.is_summed(x.ndim) or sharding.is_summed(x.ndim):
        return _sum_anew(x, sharding)
    here, there = x.sharding.is_fully_addressable, sharding.is_fully_addressable
    if not (here and there) and x.sharding.device_set != sharding.device_set:
        # Each process has its own uncommitted array, so it is not sent.
        plan = plan_transfer(x.shape, x.dtype, x.sharding, sharding) if x.committed else None
        if plan is not None:
            return transfer(x, plan, share=share)
        if not sharding.addressable_devices:
            require_addressable(sharding.devices[0], f"{sharding!r}")
    if not here and not (x.sharding.addressable_devices and x.sharding.is_fully_replicated):
        return reshard_globally(x, sharding)
    return None


def _sum_anew(x: Array, to: Sharding) -> Array:
    """Reshards an array if devices have terms of a sum, before or afterwards; else None."""
    # Workaround for shardy-unreduced: the process ends over two meshes, and from terms to terms.
    own = x.sharding
    same = isinstance(own, NamedSharding) and isinstance(to, NamedSharding) and own.mesh == to.mesh
    if same and not (own.is_summed(x.ndim) and to.is_summed(x.ndim)):
        return reshard_globally(x, to)
    if own.is_summed(x.ndim):
        return reshard(reshard(x, replicate(own)), to)
    return reshard_globally(reshard(x, replicate(to)), to)


def _widen(x: Array, to: ReplicaSharding) -> Array:
    """Copies the values of replicas to a sharding with more devices for each replica."""
    shards, each = x._live(), len(to.devices) // len(x.sharding.devices)
    buffers = [copy_buffer(shards[i // each], device) for i, device in enumerate(to.devices)]
    return join(x, to, buffers)


_Key = tuple[tuple[int, ...], np.dtype[np.generic], Sharding, Sharding]
_loaded: BoundedCache[_Key, LoadedExecutable] = BoundedCache(256)


def reshard_globally(x: Array, sharding: Sharding) -> Array:
    """Returns ``x`` in a sharding over the same devices, in any order, exchanged by one program.

    All processes must call it. Raises `DeviceMismatch` with both lists of ids for other devices.
    """
    shape, dtype = x.shape, x.dtype
    sharding.check_shape(shape)
    key = (shape, dtype, x.sharding, sharding)
    loaded = _loaded.get_or_make(key, lambda: _load(*key))
    if config.distributed_debug:
        LaunchLog("reshard", loaded, x.sharding.devices, [repr(x._aval)]).write()
    [shards] = loaded.execute([x._live()])
    by_device = {buffer.device: buffer for buffer in shards}
    devices = sharding.addressable_devices
    parts = devices[0].client.shards([by_device[device] for device in devices])
    return array_of_shards(shape, dtype, sharding, parts, x._aval.weak)


def _load(
    shape: tuple[int, ...], dtype: np.dtype[np.generic], source: Sharding, target: Sharding
) -> LoadedExecutable:
    devices = source.devices
    if set(devices) != set(target.devices):
        raise DeviceMismatch(
            f"an array with parts in several processes is on devices {[d.id for d in devices]}; "
            f"{target!r} has {[d.id for d in target.devices]}. Between processes it can be "
            "divided otherwise over the same devices, in any order; "
            "plugrt.process_allgather(x, tiled=True) gives all of it to each process"
        )
    name = tensor_name(shape, dtype)
    bodies = _write_bodies(source, target, len(shape))
    given, asked = (f"{{sdy.sharding = #sdy.sharding<{body}>}}" for body in bodies)
    text = (
        f"module @reshard attributes {{mhlo.num_partitions = {len(devices)} : i32}} {{\n"
        f"  func.func public @main(%0: {name} {given}) -> ({name} {asked}) {{\n"
        f"    return %0 : {name}\n  }}\n}}\n"
    )
    if "unreduced" in text:
        require_open_sums(devices[0].client, "reshard")
    program = Program(text.encode(), name="reshard")
    agree_on_program(program, devices)
    options = CompileOptions(
        num_partitions=len(devices),
        device_assignment=DeviceAssignment((tuple(device.id for device in devices),)),
        use_spmd_partitioning=True,
        use_shardy_partitioner=True,
    )
    return compile_program(devices[0].client, program, options, [TensorType(shape, dtype)])


def _write_bodies(source: Sharding, target: Sharding, ndim: int) -> tuple[str, str]:
    """Returns two shardings over the same devices as Shardy's attributes."""
    if source.is_summed(ndim) or target.is_summed(ndim):
        return sharding_body(source, ndim), sharding_body(target, ndim)
    held, wanted = source.tiling(ndim), target.tiling(ndim)
    assert held is not None, "replicas are of one process"
    assert wanted is not None, "replicas are of one process"
    of_device = dict(zip(target.devices, wanted.tiles, strict=True))
    moved = Tiling(wanted.parts, tuple(of_device[device] for device in source.devices))
    return tiling_body(held), tiling_body(moved)
