"""Gathers, broadcasts and compares values of processes, and makes arrays over a mesh of them."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.errors import ArgumentError, ArgumentTypeError, DistributedError, ValuesDiffer
from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.host_data import host_array
from plugrt.execution.shardings.gspmd_sharding import GSPMDSharding, replicate
from plugrt.execution.shardings.mesh import Mesh
from plugrt.execution.shardings.named_sharding import NamedSharding
from plugrt.execution.shardings.partition_spec import PartitionSpec
from plugrt.execution.shardings.tiling import Tiling
from plugrt.execution.transfers.array_parts import (
    make_array_from_process_local_data,
    make_array_from_single_device_arrays,
)
from plugrt.execution.transfers.resharding import reshard
from plugrt.execution.transfers.transfer import device_put
from plugrt.execution.trees import pytrees
from plugrt.execution.trees.tree_prefixes import spread_prefix
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.plugins.selection import backends


@with_argument_errors
def process_allgather(in_tree: object, tiled: bool = False) -> Any:
    """Returns the data of all processes as NumPy arrays, in each; all of them must call it.

    ``in_tree`` is a pytree of host data, of arrays of this process, or of arrays with parts in
    several. Data of each process are stacked along a new first axis, in the order of processes, or
    with ``tiled`` concatenated along the first axis; they have the same shapes in all. An array
    with parts in several processes is returned whole (JAX requires ``tiled=True`` for it). As
    ``jax.experimental.multihost_utils.process_allgather``. Raises `NotAnArray` for any other
    object, and `DistributedError` if another process gathers data of another shape or dtype.

    >>> plugrt.process_allgather(np.float32([1, 2]))
    array([[1., 2.]], dtype=float32)
    """
    return pytrees.map(lambda leaf: _gather(leaf, tiled), in_tree)


def _gather(leaf: Any, tiled: bool) -> npt.NDArray[np.generic]:
    if is_everywhere(leaf):
        return read_everywhere(leaf)
    host = read_here(leaf)
    if tiled and not host.ndim:
        host = host[np.newaxis]  # scalars are stacked, as in JAX
        return stack_processes(host).reshape(-1)
    stacked = stack_processes(host)
    return stacked.reshape(-1, *host.shape[1:]) if tiled else stacked


def is_everywhere(leaf: object) -> bool:
    """Whether it is an array with parts in several processes."""
    return type(leaf) is Array and not leaf.sharding.is_fully_addressable


def read_everywhere(x: Array) -> npt.NDArray[np.generic]:
    """Returns the contents of an array with parts in several processes, in each of them."""
    return np.asarray(reshard(x, replicate(x.sharding)))


def read_here(leaf: object) -> npt.NDArray[np.generic]:
    """Returns host data, or an array of this process, on the host."""
    return np.asarray(leaf) if isinstance(leaf, Array) else host_array(leaf)


def stack_processes(host: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Returns the arrays of all processes along a new first axis."""
    count = backends.process_count()
    if count == 1:
        return host[np.newaxis]
    # All devices of a process hold the array of that process.
    devices = backends.devices()
    tiles = tuple(device.process_index for device in devices)
    tiling = Tiling((count, *(1 for _ in host.shape)), tiles)
    each = GSPMDSharding.from_tiling(devices, tiling)
    whole = make_array_from_process_local_data(each, host[np.newaxis], (count, *host.shape))
    return np.asarray(reshard(whole, GSPMDSharding.get_replicated(devices)))


@with_argument_errors
def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """Returns the data of one process as NumPy arrays, in each; all of them must call it.

    ``in_tree`` is a pytree of host data, of arrays of this process, or of arrays with parts in
    several, which are returned whole; the others have the same shapes and dtypes in all processes.
    ``is_source`` states whether this process is the source; by default process 0 is. As
    ``jax.experimental.multihost_utils.broadcast_one_to_all``, which adds up the data of several
    sources. Each process gathers the data of all processes, so it needs memory for them. Raises
    `DistributedError` unless exactly one process is the source, or if one passes data of another
    shape or dtype; `NotAnArray` for an object that is no array.

    >>> plugrt.broadcast_one_to_all({"seed": 7})
    {'seed': array(7, dtype=int32)}
    """
    count = backends.process_count()
    own = backends.process_index() == 0 if is_source is None else bool(is_source)
    sources = np.flatnonzero(stack_processes(np.asarray(own))).tolist()
    if len(sources) != 1:
        raise DistributedError(
            "broadcast_one_to_all takes the data of one process; is_source is true in "
            f"{sources or 'none'} of {count}"
        )

    def broadcast(leaf: Any) -> Any:
        return read_everywhere(leaf) if is_everywhere(leaf) else _pick(leaf, sources[0])

    return pytrees.map(broadcast, in_tree)


def _pick(leaf: object, source: int) -> Any:
    return np.asarray(stack_processes(read_here(leaf))[source])


@with_argument_errors
def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Raises in all processes if one has other values; all of them must call it.

    ``in_tree`` is a pytree of host data, of arrays of this process, or of arrays that each device
    has whole, with the same shapes and dtypes in all processes. Each process gathers the data of
    all, and needs memory for them. NaN differs from NaN. As
    ``jax.experimental.multihost_utils.assert_equal``. Raises `ValuesDiffer`, which is an
    AssertionError, with ``fail_message`` and the values; `DistributedError` where another process
    compares something of another shape or dtype; `ArgumentError` for an array that is divided
    between processes; `NotAnArray` for another object.

    >>> plugrt.assert_equal({"step": 7})
    """
    for leaf in pytrees.leaves(in_tree):
        if is_everywhere(leaf) and not leaf.sharding.is_fully_replicated:
            raise ArgumentError(
                "assert_equal compares what each process has, and they have different parts of "
                f"{leaf.sharding!r}"
            )
        own = leaf.addressable_shards[0].data if is_everywhere(leaf) else leaf
        found = stack_processes(read_here(own))
        if not np.all(found == found[0]):
            raise ValuesDiffer(
                f"{fail_message or 'assert_equal: the processes have different values'}. The "
                f"values, in the order of processes: {found!r:.300}"
            )


@with_argument_errors
def sync_global_devices(name: str) -> None:
    """Waits until all processes call it, and all devices have come to it.

    ``name`` identifies the wait, and is the same in all. As
    ``jax.experimental.multihost_utils.sync_global_devices``. Raises `ValuesDiffer`, which is an
    AssertionError, in all processes if one passes another name.

    >>> plugrt.sync_global_devices("after the checkpoint")
    """
    if not isinstance(name, str):
        raise ArgumentTypeError(f"sync_global_devices takes a name; got {name!r:.100}")
    assert_equal(np.uint32(zlib.crc32(name.encode())), f"sync_global_devices got {name!r} here")


@with_argument_errors
def host_local_array_to_global_array(local_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """Returns arrays over a mesh of all processes; each process gives its part.

    ``local_inputs`` is a pytree of host data or of arrays of this process, ``pspecs`` a pytree
    prefix of it, of `PartitionSpec`. A dimension is multiplied by the number of processes that
    divide it; the other dimensions have the same data in all of them. Arrays with parts in several
    processes stay as they are. The devices of each process are a contiguous part of the mesh. As
    ``jax.experimental.multihost_utils.host_local_array_to_global_array``, for eager calls; in
    functions that are traced, arrays are over the mesh already. Raises `ArgumentTypeError` for
    other objects than a mesh and specs, `InvalidArgument` for a mesh that is not contiguous,
    `ShapeError` for data that the spec does not divide, and `StructureError` for no prefix.

    >>> from plugrt.sharding import PartitionSpec as P
    >>> mesh = plugrt.make_mesh((2,), ("x",))
    >>> plugrt.host_local_array_to_global_array(np.float32([1, 2]), mesh, P("x")).sharding.spec
    P('x',)
    """

    def convert(leaf: Any, ours: NamedSharding, whole: NamedSharding) -> Any:
        if is_everywhere(leaf):
            return leaf
        local = device_put(leaf, ours)
        return _rename(local, whole, lambda size, few, all_: size // few * all_)

    return _convert(convert, local_inputs, global_mesh, pspecs, "local_inputs")


@with_argument_errors
def global_array_to_host_local_array(global_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """Returns the part that this process has of arrays over a mesh of all processes.

    Undoes `host_local_array_to_global_array`: the results are arrays over the part of the mesh that
    has the devices of this process. Arrays with another sharding than ``pspecs`` are resharded
    first. Arrays of this process alone stay as they are. As
    ``jax.experimental.multihost_utils.global_array_to_host_local_array``. Raises as
    `host_local_array_to_global_array` does.

    >>> from plugrt.sharding import NamedSharding, PartitionSpec as P
    >>> mesh = plugrt.make_mesh((2,), ("x",))
    >>> x = plugrt.device_put(np.float32([1, 2]), NamedSharding(mesh, P("x")))
    >>> plugrt.global_array_to_host_local_array(x, mesh, P("x"))
    Array([1., 2.], dtype=float32)
    """

    def convert(leaf: Any, ours: NamedSharding, whole: NamedSharding) -> Any:
        if isinstance(leaf, Array) and leaf.is_fully_addressable:
            return leaf
        divided = device_put(leaf, whole)
        return _rename(divided, ours, lambda size, few, all_: size // all_ * few)

    return _convert(convert, global_inputs, global_mesh, pspecs, "global_inputs")


def _convert(
    convert: Callable[[Any, NamedSharding, NamedSharding], Any],
    tree: Any,
    mesh: object,
    specs: Any,
    what: str,
) -> Any:
    """Calls a function on each leaf, with its shardings over the local and the whole mesh."""
    if not isinstance(mesh, Mesh):
        raise ArgumentTypeError(f"global_mesh is a Mesh; got {mesh!r:.100}")
    leaves, structure = pytrees.flatten(tree)
    each = spread_prefix(specs, tree, "pspecs", what)
    local = mesh.local_mesh
    made = [
        convert(leaf, NamedSharding(local, spec), NamedSharding(mesh, spec))
        for leaf, spec in zip(leaves, each, strict=True)
    ]
    return pytrees.unflatten(structure, made)


def _rename(x: Array, sharding: NamedSharding, scale: Callable[[int, int, int], int]) -> Array:
    """Returns the array of the same parts over another part of the mesh.

    ``scale`` computes each dimension's size, from its present size and its numbers of parts over
    the smaller and the larger mesh.
    """
    assert isinstance(x.sharding, NamedSharding)
    spec: PartitionSpec = sharding.spec
    meshes = sorted((x.sharding.mesh, sharding.mesh), key=lambda mesh: mesh.size)
    few, many = (
        [math.prod(mesh.shape[name] for name in spec.axes_of(i)) for i in range(x.ndim)]
        for mesh in meshes
    )
    shape = tuple(map(scale, x.shape, few, many))
    parts = [shard.data for shard in x.addressable_shards]
    return make_array_from_single_device_arrays(shape, sharding, parts, dtype=x.dtype)
