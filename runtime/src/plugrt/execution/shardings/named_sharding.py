"""`NamedSharding`: a mesh, and the axes that divide each dimension."""

from __future__ import annotations

import operator
from collections.abc import Sequence, Set
from functools import lru_cache
from typing import TypeGuard

import numpy as np

from plugrt.errors import ArgumentTypeError, InvalidArgument, ShapeError
from plugrt.execution.shardings.abstract_mesh import AbstractMesh
from plugrt.execution.shardings.mesh import Mesh, make_mesh
from plugrt.execution.shardings.partition_spec import PartitionSpec
from plugrt.execution.shardings.sharding_base import Sharding
from plugrt.execution.shardings.tiled_sharding import TiledSharding
from plugrt.execution.shardings.tiling import Tiling, with_terms
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import Device


class NamedSharding(TiledSharding):
    """Dimensions divided over named axes of a mesh; the other axes hold copies.

    ``spec`` is a `PartitionSpec`; ``memory_kind`` names a memory of the devices other than the
    default one. With an `AbstractMesh` it has shapes and no devices. A dimension that is divided
    over several axes is divided over the first of them in large parts, over the last in small ones.
    As ``jax.sharding.NamedSharding``. It can be pickled, as its mesh can. Raises `InvalidArgument`
    for an axis that the mesh lacks, and for a memory kind that the devices lack.

    >>> from plugrt.sharding import NamedSharding, PartitionSpec as P
    >>> mesh = plugrt.make_mesh((2, 2), ("x", "y"))
    >>> NamedSharding(mesh, P("x")).shard_shape((8, 3))
    (4, 3)
    """

    __slots__ = ("_hash", "_mesh", "_spec")

    @with_argument_errors
    def __init__(
        self, mesh: AbstractMesh, spec: PartitionSpec, *, memory_kind: str | None = None
    ) -> None:
        if not isinstance(mesh, AbstractMesh):
            raise ArgumentTypeError(f"NamedSharding takes a Mesh; got {mesh!r:.100}")
        if not isinstance(spec, PartitionSpec):
            raise ArgumentTypeError(
                f"NamedSharding takes a PartitionSpec; got {type(spec).__name__} {spec!r:.100}: "
                f"write PartitionSpec({_write_entries(spec):.100})"
            )
        if isinstance(mesh, Mesh):
            mesh.require_no_manual_axes()
        spec.require_different()
        unknown = [name for name in spec.axis_names if name not in mesh.axis_names]
        if unknown:
            raise InvalidArgument(
                f"{spec!r} names the axis {unknown[0]!r}, and the mesh has {mesh.axis_names}"
            )
        if PartitionSpec.UNCONSTRAINED in spec.partitions and not mesh.auto_axes:
            raise InvalidArgument(
                f"{spec!r} leaves a dimension to the compiler (PartitionSpec.UNCONSTRAINED), and "
                f"no axis of {mesh!r} is Auto"
            )
        for what, axes in (("unreduced", spec.unreduced), ("reduced", spec.reduced)):
            _check_sums(mesh, spec, what, axes)
        super().__init__(mesh.flat_devices if isinstance(mesh, Mesh) else (), memory_kind)
        self._mesh, self._spec = mesh, spec
        self._hash = hash((mesh, spec, self._memory_kind))

    @property
    def devices(self) -> tuple[Device, ...]:
        if not self._devices:
            raise InvalidArgument(
                f"{self!r} has no devices: its mesh is empty, or a shape alone; take a Mesh"
            )
        return self._devices

    @property
    def mesh(self) -> AbstractMesh:
        """The mesh whose axes the spec names."""
        return self._mesh

    @property
    def spec(self) -> PartitionSpec:
        """The axes that each dimension is divided over."""
        return self._spec

    @property
    def is_fully_replicated(self) -> bool:
        own = (*self._spec.axis_names, *self._spec.unreduced)
        return all(self._mesh.shape[name] == 1 for name in own)

    @property
    def num_devices(self) -> int:
        return self._mesh.size

    @with_argument_errors
    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        if not isinstance(other, NamedSharding) or (self._has_devices and other._has_devices):
            return super().is_equivalent_to(other, ndim)
        return (
            self._has_devices == other._has_devices
            and self._mesh.size == other._mesh.size
            and self._memory_kind == other._memory_kind
            and self.tiling(ndim) == other.tiling(ndim)
        )

    @property
    def _has_devices(self) -> bool:
        return isinstance(self._mesh, Mesh)

    def with_memory_kind(self, kind: str) -> NamedSharding:
        return NamedSharding(self._mesh, self._spec, memory_kind=kind)

    def left_open(self) -> NamedSharding:
        """Returns the sharding in an array's type with all other axes left to the compiler."""
        if len(self._mesh.explicit_axes) == len(self._mesh.axis_names):
            return self
        left = PartitionSpec.UNCONSTRAINED
        spec = self._spec.update(partitions=[entry or left for entry in self._spec])
        return NamedSharding(self._mesh, spec)

    @property
    def is_partial(self) -> bool:
        """Whether it leaves a dimension to the compiler, so that it cannot place an array."""
        return PartitionSpec.UNCONSTRAINED in self._spec

    def require_whole(self) -> None:
        """Raises `InvalidArgument` if it leaves a dimension to the compiler."""
        if self.is_partial:
            raise InvalidArgument(
                f"{self!r} leaves a dimension to the compiler (PartitionSpec.UNCONSTRAINED), and "
                "places no array; with_sharding_constraint and jit's out_shardings accept it"
            )

    def check_shape(self, shape: Sequence[int]) -> None:
        if self.is_partial:
            known = [None if e is PartitionSpec.UNCONSTRAINED else e for e in self._spec]
            NamedSharding(self._mesh, self._spec.update(partitions=known)).check_shape(shape)
        else:
            super().check_shape(shape)

    @with_argument_errors
    def check_rank(self, ndim: int) -> None:
        self.require_whole()
        if len(self._spec) > operator.index(ndim):
            cure = "" if ndim else ": PartitionSpec() is for scalars"
            raise ShapeError(
                f"{self!r} names {len(self._spec)} dimensions, and the array has {ndim}{cure}"
            )

    def _make_tiling(self, ndim: int) -> Tiling:
        self.require_whole()
        sizes = self._mesh.shape
        beyond = map(self._spec.axes_of, range(ndim, len(self._spec)))
        if any(sizes[name] > 1 for axes in beyond for name in axes):
            self.check_rank(ndim)
        where = dict(zip(sizes, np.indices(self._mesh.axis_sizes), strict=True))
        parts, tiles = [], np.zeros(self._mesh.axis_sizes, np.int64)
        terms = np.zeros(self._mesh.axis_sizes, np.int64)
        for axes in map(self._spec.axes_of, range(min(ndim, len(self._spec)))):
            parts.append(int(np.prod([sizes[name] for name in axes], dtype=np.int64)))
            for name in axes:
                tiles = tiles * sizes[name] + where[name]
        for name in sorted(self._spec.unreduced):
            terms = terms * sizes[name] + where[name]
        rest = (1,) * (ndim - len(parts))
        return with_terms((*parts, *rest), tuple(tiles.ravel().tolist()), terms.ravel().tolist())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NamedSharding):
            return NotImplemented
        return self is other or (
            self._hash == other._hash
            and self._mesh == other._mesh
            and self._spec == other._spec
            and self._memory_kind == other._memory_kind
        )

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self._mesh, self._spec, self._memory_kind)

    def __repr__(self) -> str:
        where = f", memory_kind={self._memory_kind!r}" if self._memory_kind else ""
        return f"NamedSharding({self._mesh.brief}, {self._spec!r}{where})"


def _check_sums(mesh: AbstractMesh, spec: PartitionSpec, what: str, axes: Set[str]) -> None:
    """Raises `InvalidArgument` for axes in ``unreduced`` or ``reduced`` that are not Explicit."""
    for name in sorted(axes):
        if name not in mesh.axis_names:
            raise InvalidArgument(
                f"{what}={axes!r:.60} of {spec!r} names the axis {name!r}, and the mesh has "
                f"{mesh.axis_names}"
            )
        if name not in mesh.explicit_axes:
            raise InvalidArgument(
                f"{what}={axes!r:.60} of {spec!r} names {name!r}, which is not an Explicit axis: "
                "add up within shard_map, with plugrt.lax.psum"
            )


def explicit_part(mesh: AbstractMesh, spec: PartitionSpec, ndim: int) -> NamedSharding:
    """Returns the sharding in an array's type: an entry for each dimension, only Explicit axes."""
    return _explicit_part(mesh.abstract_mesh, spec, ndim)


@lru_cache(maxsize=4096)
def _explicit_part(mesh: AbstractMesh, spec: PartitionSpec, ndim: int) -> NamedSharding:
    explicit = mesh.explicit_axes
    own = (tuple(n for n in spec.axes_of(i) if n in explicit) for i in range(ndim))
    unreduced, reduced = (axes.intersection(explicit) for axes in (spec.unreduced, spec.reduced))
    return NamedSharding(mesh, PartitionSpec(*own, unreduced=unreduced, reduced=reduced))


def is_abstract(sharding: object) -> TypeGuard[NamedSharding]:
    """Whether it is over an `AbstractMesh`, and so names no devices."""
    return isinstance(sharding, NamedSharding) and not isinstance(sharding.mesh, Mesh)


def over_devices(sharding: Sharding, devices: Sequence[Device]) -> Sharding:
    """Returns a sharding over an `AbstractMesh` over these devices, any other unchanged."""
    if not is_abstract(sharding):
        return sharding
    mesh = make_mesh(*sharding.mesh._parts, devices=devices)
    return NamedSharding(mesh, sharding.spec, memory_kind=sharding.memory_kind)


def _write_entries(spec: object) -> str:
    entries = spec if isinstance(spec, tuple | list) else () if spec is None else (spec,)
    return ", ".join(map(repr, entries))


def _rebuild(mesh: AbstractMesh, spec: PartitionSpec, memory_kind: str | None) -> NamedSharding:
    return NamedSharding(mesh, spec, memory_kind=memory_kind)
