"""`Mesh`: devices in an array with named axes; `AbstractMesh`, its shape alone; `make_mesh`."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.argument_errors import with_argument_errors
from plugrt.errors import ArgumentTypeError, DeviceMismatch, InvalidArgument
from plugrt.execution.partition_spec import AxisName
from plugrt.interface import Client, Device
from plugrt.plugins import backends


class AbstractMesh:
    """The sizes and names of a mesh's axes, without devices: enough for shapes.

    As ``jax.sharding.AbstractMesh``. Raises `InvalidArgument` for names that are not as many as
    the sizes, and for a name or a size that cannot be.

    >>> plugrt.sharding.AbstractMesh((2, 4), ("x", "y"))
    AbstractMesh('x': 2, 'y': 4)
    """

    __slots__ = ("__weakref__", "_names", "_sizes")

    @with_argument_errors
    def __init__(
        self, axis_sizes: Sequence[int], axis_names: AxisName | Sequence[AxisName]
    ) -> None:
        self._sizes = tuple(map(operator.index, axis_sizes))
        self._names = _read_names(axis_names)
        if len(self._sizes) != len(self._names):
            raise InvalidArgument(
                f"{len(self._sizes)} axis sizes {self._sizes} and {len(self._names)} axis names "
                f"{self._names}: a mesh has one name for each axis"
            )
        if any(size < 1 for size in self._sizes):
            raise InvalidArgument(f"the axes of a mesh have at least one device: {self._sizes}")

    @property
    def axis_names(self) -> tuple[AxisName, ...]:
        """The names of the axes."""
        return self._names

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        """The number of devices along each axis."""
        return self._sizes

    @property
    def shape(self) -> Mapping[AxisName, int]:
        """The size of each axis, by name."""
        return MappingProxyType(dict(zip(self._names, self._sizes, strict=True)))

    @property
    def size(self) -> int:
        """The number of devices."""
        return math.prod(self._sizes)

    @property
    def empty(self) -> bool:
        """Whether it has no axes."""
        return not self._names

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The mesh without devices."""
        return self

    def __eq__(self, other: object) -> bool:
        if type(other) is not AbstractMesh:
            return NotImplemented
        return (self._sizes, self._names) == (other._sizes, other._names)

    def __hash__(self) -> int:
        return hash((self._sizes, self._names))

    def __reduce__(self) -> Any:
        return AbstractMesh, (self._sizes, self._names)

    def __repr__(self) -> str:
        axes = zip(self._names, self._sizes, strict=True)
        return f"{type(self).__name__}({', '.join(f'{name!r}: {size}' for name, size in axes)})"


class Mesh(AbstractMesh):
    """Devices in an array of any number of dimensions, whose axes have names.

    ``devices`` is that array (or nested sequences; one device for a mesh without axes). Meshes of
    the same devices, in the same order, with the same names are equal. One can be pickled, by the
    ids of its devices: it is read where a backend of that name has devices of those ids. As
    ``jax.sharding.Mesh``, without axis types: the axes are what JAX calls ``Auto``, so the
    compiler decides what the program leaves open.

    Raises `InvalidArgument` where the names are not as many as the dimensions, or one is named
    twice, and for a device that is there twice; `DeviceMismatch` for devices of several backends.

    >>> plugrt.sharding.Mesh(plugrt.devices("cpu")[:4], ("x",))
    Mesh('x': 4)
    """

    __slots__ = ("_devices", "_flat", "_hash")

    @with_argument_errors
    def __init__(
        self, devices: npt.ArrayLike | Sequence[Any] | Device, axis_names: str | Sequence[AxisName]
    ) -> None:
        array = np.array(devices, dtype=object)
        _check_devices(array)
        names = _read_names(axis_names)
        if array.ndim != len(names):
            raise InvalidArgument(
                f"devices of shape {array.shape} and the axis names {names}: a mesh has one name "
                f"for each of the {array.ndim} dimensions; np.array(devices).reshape(…) gives "
                "devices more"
            )
        array.flags.writeable = False
        self._devices: npt.NDArray[np.object_] = array
        self._flat: tuple[Device, ...] = tuple(array.flat)
        self._hash = hash((self._flat, array.shape, names))
        super().__init__(array.shape, names)

    @property
    def devices(self) -> npt.NDArray[np.object_]:
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
        """The backend of the devices."""
        return self._flat[0].client

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

        Raises `InvalidArgument` where they are no contiguous box of the mesh, or there are none.
        """
        local = np.vectorize(lambda d: d.is_addressable, otypes=[bool])(self._devices)
        if not local.any():
            raise InvalidArgument(f"{self!r} has no device of this process")
        box = tuple(slice(int(at.min()), int(at.max()) + 1) for at in np.nonzero(local))
        if not local[box].all():
            raise InvalidArgument(
                f"the devices of this process in {self!r} are no contiguous part of it: "
                f"{self.local_devices}"
            )
        return Mesh(self._devices[box], self._names)

    @property
    def abstract_mesh(self) -> AbstractMesh:
        return AbstractMesh(self._sizes, self._names)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mesh):
            return NotImplemented
        return self is other or (
            self._flat == other._flat
            and self._sizes == other._sizes
            and self._names == other._names
        )

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> Any:
        return _find_mesh, (_name_of(self.client), self.device_ids.tolist(), self._names)


@with_argument_errors
def make_mesh(
    axis_shapes: Sequence[int],
    axis_names: AxisName | Sequence[AxisName],
    *,
    devices: Sequence[Device] | None = None,
) -> Mesh:
    """Returns a mesh of these sizes, over the first of the devices, in their order.

    ``devices`` are by default those of the default backend. As ``jax.make_mesh``, without axis
    types; JAX puts the devices of a TPU in an order of its own, by their coordinates: give
    ``devices`` in the order that you want. Raises `InvalidArgument` where there are too few.

    >>> plugrt.make_mesh((2, 2), ("x", "y"))
    Mesh('x': 2, 'y': 2)
    """
    abstract = AbstractMesh(axis_shapes, axis_names)
    have = backends.devices() if devices is None else list(devices)
    if len(have) < abstract.size:
        of = "the default backend has" if devices is None else "it was given"
        raise InvalidArgument(
            f"a mesh of {' x '.join(map(str, abstract.axis_sizes))} needs {abstract.size} devices; "
            f"{of} {len(have)}: {have}"
        )
    grid = np.empty(abstract.size, object)
    grid[:] = have[: abstract.size]
    return Mesh(grid.reshape(abstract.axis_sizes), abstract.axis_names)


def _read_names(names: Any) -> tuple[AxisName, ...]:
    if isinstance(names, str):
        names = (names,)
    if not isinstance(names, Iterable):
        raise ArgumentTypeError(f"the axis names of a mesh are strings; got {names!r:.100}")
    result = tuple(names)
    for name in result:
        if not isinstance(name, str):
            raise ArgumentTypeError(
                f"the axes of a mesh are named by strings; got {type(name).__name__} {name!r:.100}"
            )
    if len(set(result)) != len(result):
        raise InvalidArgument(f"the axes of a mesh have different names; got {result}")
    return result


def _check_devices(array: npt.NDArray[np.object_]) -> None:
    flat = [*array.flat]
    wrong = [x for x in flat if not isinstance(x, Device)]
    if wrong or not flat:
        raise InvalidArgument(
            "Mesh takes an array of devices, at least one (see plugrt.devices()); got "
            f"{f'{wrong[0]!r:.100}' if wrong else 'none'}"
        )
    twice = sorted({repr(device) for device in flat if flat.count(device) > 1})
    if twice:
        raise InvalidArgument(f"Mesh has each device once; got {', '.join(twice)} twice")
    if len({device.client for device in flat}) > 1:
        raise DeviceMismatch(
            "the devices of a mesh are of one backend; got "
            + ", ".join(sorted({device.client.backend_name for device in flat}))
        )


def _name_of(client: Client) -> str:
    """Returns the name by which `plugrt.devices` finds a client, also in another process."""
    names = [name for name, known in backends.backends().items() if known is client]
    return names[0] if names else client.platform


def _find_mesh(backend: str, ids: Any, names: tuple[AxisName, ...]) -> Mesh:
    """Returns the mesh of a backend's devices with these ids, for a mesh that was pickled."""
    known = {device.id: device for device in backends.devices(backend)}
    wanted = np.asarray(ids)
    missing = sorted({int(i) for i in wanted.flat} - set(known))
    if missing:
        raise InvalidArgument(
            f"a pickled mesh has the devices {missing} of {backend}; here it has {sorted(known)}"
        )
    grid = np.empty(wanted.shape, object)
    for at in np.ndindex(wanted.shape):
        grid[at] = known[int(wanted[at])]
    return Mesh(grid, names)
