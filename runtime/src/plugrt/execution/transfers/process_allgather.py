"""`process_allgather`: what each process has, in all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.host_data import host_array
from plugrt.execution.shardings.divided import replicate
from plugrt.execution.shardings.gspmd_sharding import GSPMDSharding
from plugrt.execution.shardings.tiling import Tiling
from plugrt.execution.transfers.array_parts import make_array_from_process_local_data
from plugrt.execution.transfers.resharding import reshard
from plugrt.execution.trees import tree
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.plugins.selection import backends


@with_argument_errors
def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
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
    return tree.map(lambda leaf: _gather(leaf, tiled), in_tree)


def _gather(leaf: Any, tiled: bool) -> npt.NDArray[Any]:
    if is_everywhere(leaf):
        return read_everywhere(leaf)
    host = read_here(leaf)
    if tiled and not host.ndim:
        host = host[np.newaxis]  # as in JAX, scalars are stacked
        return stack_processes(host).reshape(-1)
    stacked = stack_processes(host)
    return stacked.reshape(-1, *host.shape[1:]) if tiled else stacked


def is_everywhere(leaf: Any) -> bool:
    """Whether it is an array with parts in several processes."""
    return type(leaf) is Array and not leaf.sharding.is_fully_addressable


def read_everywhere(x: Array) -> npt.NDArray[Any]:
    """Returns all of an array with parts in several processes, in each of them."""
    return np.asarray(reshard(x, replicate(x.sharding)))


def read_here(leaf: Any) -> npt.NDArray[Any]:
    """Returns host data, or an array of this process, on the host."""
    return np.asarray(leaf) if isinstance(leaf, Array) else host_array(leaf)


def stack_processes(host: npt.NDArray[Any]) -> npt.NDArray[Any]:
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
