"""`PmapSharding` and `divide_axis`: the `NamedSharding` of arguments and results of `pmap`."""

from __future__ import annotations

import operator
from collections.abc import Hashable, Sequence

import numpy as np

from plugrt.errors import InvalidArgument, ShapeError
from plugrt.execution.shardings.mesh import Mesh
from plugrt.execution.shardings.named_sharding import NamedSharding
from plugrt.execution.shardings.partition_spec import PartitionSpec
from plugrt.execution.shardings.sharding_base import read_shape
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import Device
from plugrt.plugins.selection import backends

_UNNAMED = "_internal_pmap_axis_name"
"""JAX's name of the mesh's axis for a pmap without ``axis_name``."""


def divide_axis(
    devices: Sequence[Device], dim: int | None, name: Hashable | None = None, copies: int = 1
) -> NamedSharding:
    """Returns the sharding of arrays with a slice along ``dim`` on each device; None: replicated.

    Its mesh has the pmap's axis, with its ``name`` if that is a string; ``copies`` consecutive
    devices hold the same slice.
    """
    axis = name if isinstance(name, str) else _UNNAMED
    grid = np.empty(len(devices), object)
    grid[:] = devices
    if copies == 1:
        mesh = Mesh(grid, (axis,))
    else:
        mesh = Mesh(grid.reshape(-1, copies), (axis, f"{axis}_copies"))
    spec = PartitionSpec() if dim is None else PartitionSpec(*[None] * dim, axis)
    return NamedSharding(mesh, spec)


class PmapSharding(NamedSharding):
    """One slice of the array on each device: the `NamedSharding` of results of `pmap`.

    ``sharded_dim`` is the dimension that is divided, None means that each device holds the whole
    array, and ``replicas`` consecutive devices hold the same slice. The mesh is the one of a pmap
    without ``axis_name``, and a call returns the `NamedSharding` over it. JAX has had no class of
    that name since 0.10. Raises `InvalidArgument` for no devices, one that is named twice, or a
    number of them that ``replicas`` does not divide.
    """

    __slots__ = ()

    @with_argument_errors
    def __new__(  # type: ignore[misc]  # arrays would have the one or the other, as equals share avals
        cls, devices: Sequence[Device], sharded_dim: int | None = 0, *, replicas: int = 1
    ) -> NamedSharding:
        if sharded_dim is not None and (type(sharded_dim) is not int or sharded_dim < 0):
            raise InvalidArgument(
                f"PmapSharding's sharded_dim is a dimension from 0 or None; got {sharded_dim!r}"
            )
        found = tuple(devices)
        if type(replicas) is not int or replicas < 1 or not found or len(found) % replicas:
            raise InvalidArgument(
                "PmapSharding is over at least one device, and replicas of them hold each slice; "
                f"got {len(found)} devices (see plugrt.devices()) and replicas={replicas!r}"
            )
        same = divide_axis(found, sharded_dim, copies=replicas)
        return NamedSharding(same.mesh, same.spec)

    @classmethod
    @with_argument_errors
    def default(
        cls,
        shape: Sequence[int],
        sharded_dim: int | None = 0,
        devices: Sequence[Device] | None = None,
    ) -> NamedSharding:
        """Returns the sharding of an array of ``shape`` for `pmap`.

        ``devices`` are by default the first of the default backend, one for each slice along
        ``sharded_dim``; with None all devices hold the whole. As JAX's method of that name. Raises
        `ShapeError` for a shape without that dimension, and if there are too few devices.
        """
        sizes = read_shape(shape)
        if sharded_dim is not None and operator.index(sharded_dim) not in range(len(sizes)):
            raise ShapeError(f"an array of shape {sizes} has no dimension {sharded_dim!r} to split")
        found = backends.devices() if devices is None else list(devices)
        if sharded_dim is None:
            return cls(found, None)
        count = sizes[sharded_dim]
        if len(found) < count or (devices is not None and len(found) != count):
            raise ShapeError(
                f"dimension {sharded_dim} of the shape {sizes} has {count} slices, one for each "
                f"device; there are {len(found)} devices"
            )
        return cls(found[:count], sharded_dim)
