"""`Mesh`: devices in an array with named axes; `make_mesh`."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ParamSpec, Self, TypeVar

import numpy as np
import numpy.typing as npt

from plugrt.errors import ArgumentTypeError, InvalidArgument
from plugrt.execution.shardings import mesh_context
from plugrt.execution.shardings.abstract_mesh import AbstractMesh, AxisType, read_axis_names
from plugrt.execution.shardings.device_array import (
    DeviceArray,
    find_devices,
    name_client,
    read_devices,
)
from plugrt.execution.shardings.partition_spec import AxisName
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import Client, Device
from plugrt.lifetime.interruptions import Scope
from plugrt.plugins.selection import backends

P = ParamSpec("P")
R = TypeVar("R")


class Mesh(AbstractMesh, Scope):
    """Devices in an array of any number of dimensions, whose axes have names.

    ``devices`` is that array (or nested sequences; one device for a mesh without axes). Meshes of
    the same devices, in the same order, with the same names are equal. A mesh can be pickled, by
    the ids of its devices; unpickling needs a backend of that name with devices of those ids. As
    ``jax.sharding.Mesh``. The type of each axis is ``AxisType.Auto``: the compiler decides what the
    program leaves open. ``Mesh(None, ())`` is the empty mesh and means no mesh.

    In ``with mesh:``, or in a function that it decorates, a `PartitionSpec` by itself means this
    mesh: in ``in_shardings`` and ``out_shardings`` of `jit` (JAX no longer accepts that), and in
    `with_sharding_constraint`. It does not determine the devices of programs, except in
    `plugrt.set_mesh` and for `plugrt.pjit`.

    Raises `InvalidArgument` if the number of names is not the number of dimensions, for a repeated
    name and for a repeated device; `DeviceMismatch` for devices of several backends. A mesh with
    ``Manual`` axes cannot divide arrays: using one raises `InvalidArgument`.

    >>> plugrt.sharding.Mesh(plugrt.devices("cpu")[:4], ("x",))
    Mesh(axis_sizes=(4,), axis_names=('x',), axis_types=(Auto,))
    """

    __slots__ = ("_devices", "_flat", "_hash")

    @with_argument_errors
    def __init__(
        self,
        devices: npt.ArrayLike | Sequence[object] | Device | None,
        axis_names: str | Sequence[AxisName],
        axis_types: AxisType | tuple[AxisType, ...] | None = None,
    ) -> None:
        names = read_axis_names(axis_names)
        empty = not names and _is_none(devices)
        given: Any = devices
        array = np.array(None, object) if empty else read_devices(given, "Mesh")
        if array.ndim != len(names):
            raise InvalidArgument(
                f"devices of shape {array.shape} and the axis names {names}: a mesh has one name "
                f"for each of the {array.ndim} dimensions; np.array(devices).reshape(…) gives "
                "devices more"
            )
        self._devices: DeviceArray = array
        self._flat: tuple[Device, ...] = () if empty else tuple(array.flat)
        super().__init__(array.shape, names, axis_types)
        self._hash = hash((self._flat, self._parts))

    def require_no_manual_axes(self) -> None:
        """Raises `InvalidArgument` if an axis is ``Manual``."""
        if self.manual_axes:
            raise InvalidArgument(
                f"the axes {self.manual_axes} of a Mesh are Manual: axes are so within shard_map, "
                "which takes their names as axis_names"
            )

    @property
    def devices(self) -> DeviceArray:
        """The devices, as a NumPy array with the mesh's shape, read-only."""
        return self._devices

    @property
    def flat_devices(self) -> tuple[Device, ...]:
        """The devices in row-major order."""
        return self._flat

    @property
    def device_ids(self) -> npt.NDArray[np.int64]:
        """The devices' ids, in an array of the mesh's shape."""
        ids = np.array([device.id for device in self._flat], np.int64)
        return ids.reshape(self._devices.shape)

    @property
    def client(self) -> Client:
        """The backend of the devices. Raises `InvalidArgument` if the mesh is empty."""
        if not self._flat:
            raise InvalidArgument("an empty mesh has no devices, and no backend")
        return self._flat[0].client

    @property
    def size(self) -> int:
        return len(self._flat)

    @property
    def local_devices(self) -> list[Device]:
        """The devices of this process, in row-major order."""
        return [device for device in self._flat if device.is_addressable]

    @property
    def is_multi_process(self) -> bool:
        """Whether it has devices of several processes."""
        return len({device.process_index for device in self._flat}) > 1

    @property
    def local_mesh(self) -> Mesh:
        """The part of the mesh that has the devices of this process.

        Raises `InvalidArgument` if they are no contiguous box of the mesh, or if there are none.
        """
        if self.empty:
            return self
        local = np.vectorize(lambda d: d.is_addressable, otypes=[bool])(self._devices)
        if not local.any():
            raise InvalidArgument(f"{self!r} has no device of this process")
        box = tuple(slice(int(at.min()), int(at.max()) + 1) for at in np.nonzero(local))
        if not local[box].all():
            raise InvalidArgument(
                f"the devices of this process in {self!r} are not a contiguous part of it: "
                f"{self.local_devices}"
            )
        return Mesh(self._devices[box], self._names, self._types)

    @property
    def abstract_mesh(self) -> AbstractMesh:
        return AbstractMesh(*self._parts)

    @with_argument_errors
    def update(
        self,
        devices: npt.ArrayLike | Sequence[object] | Device | None = None,
        axis_names: str | Sequence[AxisName] | None = None,
        axis_types: AxisType | tuple[AxisType, ...] | None = None,
    ) -> Mesh:
        """Returns the mesh with other devices, or other names or types of its axes."""
        return Mesh(
            self._devices if devices is None else devices,
            self._names if axis_names is None else axis_names,
            self._types if axis_types is None else axis_types,
        )

    def _surround(self) -> Iterator[Self]:
        specs = None if self.empty else self
        with mesh_context.surround(replace(mesh_context.current(), specs=specs)):
            yield self

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Decorator: calls the function within ``with mesh:``."""

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            with self:
                return function(*args, **kwargs)

        return call

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mesh):
            return NotImplemented
        return self is other or (self._flat == other._flat and self._parts == other._parts)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        sizes, names, types = self._parts
        return f"Mesh(axis_sizes={sizes}, axis_names={names}, axis_types={types})"

    __str__ = AbstractMesh.__repr__

    def __reduce__(self) -> tuple[object, ...]:
        if self.empty:
            return Mesh, (None, ())
        return _find_mesh, (
            name_client(self.client), self.device_ids.tolist(), self._names, self._types,
        )  # fmt: skip


@with_argument_errors
def make_mesh(
    axis_shapes: Sequence[int],
    axis_names: AxisName | Sequence[AxisName],
    axis_types: AxisType | tuple[AxisType, ...] | None = None,
    *,
    devices: Sequence[Device] | None = None,
) -> Mesh:
    """Returns a mesh of these sizes, over the first of the devices, in their order.

    ``devices`` are by default all of the default backend. As ``jax.make_mesh``, with two
    differences: axes are ``AxisType.Auto`` by default (in JAX 0.10 ``Explicit``), and JAX sorts the
    devices of a TPU by their coordinates: here, pass ``devices`` in the order that you want. Raises
    `InvalidArgument` if there are too few, and the errors of `plugrt.sharding.Mesh`.

    >>> plugrt.make_mesh((2, 2), ("x", "y"))
    Mesh(axis_sizes=(2, 2), axis_names=('x', 'y'), axis_types=(Auto, Auto))
    """
    if not isinstance(axis_shapes, Iterable):
        raise ArgumentTypeError(
            f"make_mesh takes a sequence of sizes, one for each axis; got {axis_shapes!r:.100}: "
            f"write ({axis_shapes!r:.20},)"
        )
    abstract = AbstractMesh(axis_shapes, axis_names, axis_types)
    count = math.prod(abstract.axis_sizes)
    have = backends.devices() if devices is None else list(devices)
    if len(have) < count:
        of = "the default backend has" if devices is None else "it was given"
        raise InvalidArgument(
            f"a mesh of {' x '.join(map(str, abstract.axis_sizes))} needs {count} devices; "
            f"{of} {len(have)}: {have}"
        )
    grid = np.empty(count, object)
    grid[:] = have[:count]
    return Mesh(grid.reshape(abstract.axis_sizes), abstract.axis_names, abstract.axis_types)


def _is_none(devices: object) -> bool:
    """Whether it is None, or NumPy's array of None, which means the empty mesh."""
    return devices is None or (
        isinstance(devices, np.ndarray) and devices.shape == () and devices[()] is None
    )


def _find_mesh(
    backend: str,
    ids: Any,
    names: tuple[AxisName, ...],
    types: tuple[AxisType, ...] | None = None,
) -> Mesh:
    """Returns the mesh of a backend's devices with these ids, for a pickled mesh."""
    return Mesh(find_devices(backend, ids, "Mesh"), names, types)
