"""`process_allgather` and `broadcast_one_to_all`: host values shared by all processes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.errors import DistributedError
from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.host_data import host_array
from plugrt.execution.shardings.divided import replicate
from plugrt.execution.shardings.gspmd_sharding import GSPMDSharding
from plugrt.execution.shardings.tiling import Tiling
from plugrt.execution.transfers.array_parts import make_array_from_process_local_data
from plugrt.execution.transfers.resharding import reshard
from plugrt.execution.trees import pytrees
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.plugins.selection import backends


@with_argument_errors
def process_allgather(in_tree: object, tiled: bool = False) -> Any:
    """Returns the data of all processes as NumPy arrays, in each; all of them must call it.

    ``in_tree`` is a pytree of host data, of arrays of this process, or of arrays with parts in
    several. Data of each process are stacked along a new first axis, in the order of processes, or
    with ``tiled`` concatenated along the first axis; they have the same shapes in all. An array
    with parts in several processes is returned whole (JAX wants ``tiled=True`` for it). As
    ``jax.experimental.multihost_utils.process_allgather``. Raises `NotAnArray` for what is none,
    and `DistributedError` where another process gathers something of another shape or dtype.

    >>> plugrt.process_allgather(np.float32([1, 2]))
    array([[1., 2.]], dtype=float32)
    """
    return pytrees.map(lambda leaf: _gather(leaf, tiled), in_tree)


def _gather(leaf: Any, tiled: bool) -> npt.NDArray[np.generic]:
    if is_everywhere(leaf):
        return read_everywhere(leaf)
    host = read_here(leaf)
    if tiled and not host.ndim:
        host = host[np.newaxis]  # as in JAX, scalars are stacked
        return stack_processes(host).reshape(-1)
    stacked = stack_processes(host)
    return stacked.reshape(-1, *host.shape[1:]) if tiled else stacked


def is_everywhere(leaf: object) -> bool:
    """Whether it is an array with parts in several processes."""
    return type(leaf) is Array and not leaf.sharding.is_fully_addressable


def read_everywhere(x: Array) -> npt.NDArray[np.generic]:
    """Returns all of an array with parts in several processes, in each of them."""
    return np.asarray(reshard(x, replicate(x.sharding)))


def read_here(leaf: object) -> npt.NDArray[np.generic]:
    """Returns host data, or an array of this process, on the host."""
    return np.asarray(leaf) if isinstance(leaf, Array) else host_array(leaf)


def stack_processes(host: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Returns the arrays of all processes along a new first axis."""
    count = backends.process_count()
    if count == 1:
        return host[np.newaxis]
    # One device of each process holds its array, the others of the process the same.
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
    ``is_source`` is whether this process is the one; by default it is process 0. As
    ``jax.experimental.multihost_utils.broadcast_one_to_all``, which adds up the data of several
    sources. Each process gathers the data of all, for which it needs the room. Raises
    `DistributedError` where other than one process is the source, or one calls it with something
    of another shape or dtype; `NotAnArray` for what is no array.

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
