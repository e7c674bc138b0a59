"""`run_by_operation`: pmap under ``disable_jit``.

Its function runs once, on arrays that have a value for each replica. Each operation is one launch
over the replicas, so that collectives work; between them a debugger stops, and printing shows what
each replica has. As JAX 0.4.20 (``pxla._emap_impl``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from plugrt.errors import Unimplemented
from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.array_making import share_buffers
from plugrt.execution.arrays.signature import intern_signature
from plugrt.execution.shardings.replica_sharding import ReplicaSharding, run_replicas
from plugrt.execution.shardings.sharding import PmapSharding, Sharding
from plugrt.execution.transfers.host_values import as_array
from plugrt.execution.transfers.transfer import device_put
from plugrt.execution.trees import tree
from plugrt.interface import TensorType
from plugrt.transforms.pmap_axes import Axis, AxisPrefix, replica_shape, whole_output
from plugrt.transforms.pmap_launch import ReplicaMapping


def run_by_operation(
    function: Callable[..., Any],
    leaves: Sequence[Any],
    mapping: ReplicaMapping,
    out_axes: AxisPrefix,
    axis_name: Any,
) -> Any:
    """Returns the results of a function of flat arguments, of which each replica has its slice.

    Raises `Unimplemented` on the devices of several processes.
    """
    if mapping.size > mapping.local_size:
        raise Unimplemented(
            f"pmap of {mapping.title!r} under disable_jit on devices of several processes: "
            "operation by operation it knows this process alone. "
            "devices=plugrt.local_devices() maps within it; or leave disable_jit out"
        )
    here = ReplicaSharding(mapping.available[: mapping.size], axis_name)
    parts = [_take(x, axis, here) for x, axis in zip(leaves, mapping.axes, strict=True)]
    returned = run_replicas(here, lambda: function(*parts))
    outputs, structure = tree.flatten(returned)
    axes = out_axes.broadcast(returned, f"the results of {mapping.title!r}, {structure}")
    made = [
        _give(as_array(x, f"result {i} of {mapping.title!r}"), axis, here, f"result {i}")
        for i, (x, axis) in enumerate(zip(outputs, axes, strict=True))
    ]
    return tree.unflatten(structure, made)


def _take(x: Any, axis: Axis, here: ReplicaSharding) -> Array:
    if axis is None:
        return as_array(x, "an argument")
    spread = device_put(x, PmapSharding(here.devices, axis))
    return _relabel(spread, replica_shape(axis, spread.shape), here)


def _give(x: Array, axis: Axis, here: ReplicaSharding, what: str) -> Array:
    """Returns a result of the replicas as an array with `PmapSharding`."""
    at, shape = whole_output(axis, TensorType(x.shape, x.dtype), here.size, what)
    lies = x.sharding
    if not isinstance(lies, ReplicaSharding):  # the same in all: it came of no mapped argument
        lies = here
        x = device_put(x, PmapSharding(here.devices, None))
    copies = 1 if at is None else lies.copies
    return _relabel(x, shape, PmapSharding(lies.devices, at, replicas=copies))


def _relabel(x: Array, shape: tuple[int, ...], sharding: Sharding) -> Array:
    signature = intern_signature(shape, x.dtype, sharding, True, x._signature.weak)
    return share_buffers(x, signature)
