"""`reshard_globally`: arrays with parts in several processes, in another sharding."""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrt.base.bounded_cache import BoundedCache
from plugrt.errors import DeviceMismatch, NotAnArray
from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.array_making import array_of_shards
from plugrt.execution.compilation.compiler import compile_program
from plugrt.execution.executables.agreements import agree_on_program
from plugrt.execution.executables.launch_log import LaunchLog
from plugrt.execution.shardings.sharding import Sharding
from plugrt.execution.shardings.shardy_text import tiling_body
from plugrt.execution.shardings.tiling import Tiling
from plugrt.interface import (
    CompileOptions,
    DeviceAssignment,
    LoadedExecutable,
    Program,
    TensorType,
)
from plugrt.settings.declarations import config
from plugrt.stablehlo.element_names import tensor_name

_Key = tuple[tuple[int, ...], np.dtype[Any], Sharding, Sharding]
_loaded: BoundedCache[_Key, LoadedExecutable] = BoundedCache(256)


def reshard_globally(x: Array, sharding: Sharding) -> Array:
    """Returns ``x`` in a sharding over the same devices, in any order, exchanged by one program.

    All processes must call it. Raises `DeviceMismatch` with both lists of ids for other devices,
    and `NotAnArray` for shardings that divide no array into parts of its rank (pmap's).
    """
    shape, dtype = x.shape, x.dtype
    sharding.check_shape(shape)
    key = (shape, dtype, x.sharding, sharding)
    loaded = _loaded.get_or_make(key, lambda: _load(*key))
    if config.distributed_debug:
        LaunchLog("reshard", loaded, x.sharding.devices, [repr(x._signature)]).write()
    [shards] = loaded.execute([x._live()])
    by_device = {buffer.device: buffer for buffer in shards}
    devices = sharding.addressable_devices
    parts = devices[0].client.shards([by_device[device] for device in devices])
    return array_of_shards(shape, dtype, sharding, parts, x._signature.weak)


def _load(
    shape: tuple[int, ...], dtype: np.dtype[Any], source: Sharding, target: Sharding
) -> LoadedExecutable:
    devices = source.devices
    if set(devices) != set(target.devices):
        raise DeviceMismatch(
            f"an array with parts in several processes is on devices {[d.id for d in devices]}; "
            f"{target!r} has {[d.id for d in target.devices]}. Between processes it can be "
            "divided otherwise over the same devices, in any order; "
            "plugrt.process_allgather(x, tiled=True) gives all of it to each process"
        )
    held, wanted = source.tiling(len(shape)), target.tiling(len(shape))
    if held is None or wanted is None:
        raise NotAnArray(
            f"an array with parts in other processes cannot go from {source!r} to {target!r}: "
            "read .addressable_shards"
        )
    of_device = dict(zip(target.devices, wanted.tiles, strict=True))
    wanted = Tiling(wanted.parts, tuple(of_device[device] for device in devices))
    name = tensor_name(shape, dtype)
    given, asked = (f"{{sdy.sharding = #sdy.sharding<{tiling_body(t)}>}}" for t in (held, wanted))
    text = (
        f"module @reshard attributes {{mhlo.num_partitions = {len(devices)} : i32}} {{\n"
        f"  func.func public @main(%0: {name} {given}) -> ({name} {asked}) {{\n"
        f"    return %0 : {name}\n  }}\n}}\n"
    )
    program = Program(text.encode(), name="reshard")
    agree_on_program(program, devices)
    options = CompileOptions(
        num_partitions=len(devices),
        device_assignment=DeviceAssignment((tuple(device.id for device in devices),)),
        use_spmd_partitioning=True,
        use_shardy_partitioner=True,
    )
    return compile_program(devices[0].client, program, options, [TensorType(shape, dtype)])
