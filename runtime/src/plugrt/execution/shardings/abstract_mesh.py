"""`AbstractMesh`: the sizes, names and types of a mesh's axes; `AxisType`."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, auto
from types import MappingProxyType
from typing import Any

from plugrt.errors import ArgumentTypeError, InvalidArgument
from plugrt.execution.shardings.partition_spec import AxisName
from plugrt.frames.argument_errors import with_argument_errors


class AxisType(Enum):
    """How programs divide arrays over an axis of a mesh, as ``jax.sharding.AxisType``.

    ``Auto``: the compiler decides where the program states nothing. ``Manual``: the function is
    written for one device's part, as within `plugrt.shard_map`. ``Explicit``: the sharding is part
    of an array's type, by a rule for each operation; `reshard` and ``out_sharding=`` change it.
    """

    Auto = auto()
    Explicit = auto()
    Manual = auto()

    def __repr__(self) -> str:
        return self.name


class AbstractMesh:
    """The sizes, names and types of a mesh's axes, without devices: enough for shapes.

    ``axis_types`` has an `AxisType` for each axis; without it all are ``Auto``. As
    ``jax.sharding.AbstractMesh``. Raises `InvalidArgument` for names or types that are not as many
    as the sizes, and for a name or a size that cannot be.

    >>> plugrt.sharding.AbstractMesh((2, 4), ("x", "y"))
    AbstractMesh('x': 2, 'y': 4, axis_types=(Auto, Auto))
    """

    __slots__ = ("__weakref__", "_names", "_sizes", "_types")

    @with_argument_errors
    def __init__(
        self,
        axis_sizes: Sequence[int],
        axis_names: AxisName | Sequence[AxisName],
        axis_types: AxisType | tuple[AxisType, ...] | None = None,
    ) -> None:
        self._sizes = tuple(map(operator.index, axis_sizes))
        self._names = read_axis_names(axis_names)
        if len(self._sizes) != len(self._names):
            raise InvalidArgument(
                f"{len(self._sizes)} axis sizes {self._sizes} and {len(self._names)} axis names "
                f"{self._names}: a mesh has one name for each axis"
            )
        if any(size < 1 for size in self._sizes):
            raise InvalidArgument(f"the axes of a mesh have at least one device: {self._sizes}")
        self._types = _read_axis_types(axis_types, self._names)

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
    def shape_tuple(self) -> tuple[tuple[AxisName, int], ...]:
        """The name and the size of each axis."""
        return tuple(zip(self._names, self._sizes, strict=True))

    @property
    def axis_types(self) -> tuple[AxisType, ...]:
        """The `AxisType` of each axis, in the order of the names."""
        return self._types

    @property
    def auto_axes(self) -> tuple[AxisName, ...]:
        """The names of the axes whose type is ``Auto``."""
        return self._axes_of(AxisType.Auto)

    @property
    def manual_axes(self) -> tuple[AxisName, ...]:
        """The names of the axes whose type is ``Manual``."""
        return self._axes_of(AxisType.Manual)

    @property
    def explicit_axes(self) -> tuple[AxisName, ...]:
        """The names of the axes whose type is ``Explicit``."""
        return self._axes_of(AxisType.Explicit)

    @property
    def are_all_axes_auto(self) -> bool:
        """Whether there is an axis, and each is ``Auto``."""
        return {*self._types} == {AxisType.Auto}

    @property
    def are_all_axes_explicit(self) -> bool:
        """Whether there is an axis, and each is ``Explicit``."""
        return {*self._types} == {AxisType.Explicit}

    @property
    def are_all_axes_manual(self) -> bool:
        """Whether there is an axis, and each is ``Manual``."""
        return {*self._types} == {AxisType.Manual}

    def _axes_of(self, kind: AxisType) -> tuple[AxisName, ...]:
        named = zip(self._names, self._types, strict=True)
        return tuple(name for name, found in named if found is kind)

    @property
    def size(self) -> int:
        """The number of devices; 0 without axes."""
        return math.prod(self._sizes) if self._sizes else 0

    @property
    def empty(self) -> bool:
        """Whether it has no devices."""
        return self.size == 0

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The mesh without devices."""
        return self

    @with_argument_errors
    def update(
        self,
        axis_sizes: Sequence[int] | None = None,
        axis_names: AxisName | Sequence[AxisName] | None = None,
        axis_types: AxisType | tuple[AxisType, ...] | None = None,
    ) -> AbstractMesh:
        """Returns the mesh without devices, with other sizes, names or types of its axes."""
        return AbstractMesh(
            self._sizes if axis_sizes is None else axis_sizes,
            self._names if axis_names is None else axis_names,
            self._types if axis_types is None else axis_types,
        )

    @with_argument_errors
    def update_axis_types(self, name_to_type: Mapping[AxisName, AxisType]) -> AbstractMesh:
        """Returns the mesh without devices, with other types of the named axes.

        Raises `InvalidArgument` for a name that is no axis.
        """
        if unknown := [name for name in name_to_type if name not in self._names]:
            raise InvalidArgument(f"{self!r} has no axis {unknown[0]!r}")
        named = zip(self._names, self._types, strict=True)
        types = tuple(name_to_type.get(name, kind) for name, kind in named)
        return AbstractMesh(self._sizes, self._names, types)

    def as_auto(self) -> AbstractMesh:
        """Returns the mesh itself, or with only ``Auto`` axes if some are ``Manual``."""
        return (
            self.update_axis_types(dict.fromkeys(self.manual_axes, AxisType.Auto))
            if self.manual_axes
            else self
        )

    def __eq__(self, other: object) -> bool:
        if type(other) is not AbstractMesh:
            return NotImplemented
        return self._parts == other._parts

    def __hash__(self) -> int:
        return hash(self._parts)

    def __reduce__(self) -> tuple[object, ...]:
        return AbstractMesh, self._parts

    @property
    def _parts(self) -> tuple[Any, ...]:
        return self._sizes, self._names, self._types

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._show_axes() or '()'}, axis_types={self._types})"

    def _show_axes(self) -> str:
        return ", ".join(f"{name!r}: {size}" for name, size in self.shape_tuple)

    @property
    def brief(self) -> str:
        """The text of the mesh within other texts: without types if all axes are Auto."""
        if set(self._types) - {AxisType.Auto}:
            return str(self)
        return f"{type(self).__name__}({self._show_axes()})"


def _read_axis_types(given: object, names: tuple[AxisName, ...]) -> tuple[AxisType, ...]:
    """Returns a type for each axis; a single type means a tuple of one."""
    if given is None:
        return (AxisType.Auto,) * len(names)
    types = given if isinstance(given, tuple) else (given,)
    for kind in types:
        if not isinstance(kind, AxisType):
            raise ArgumentTypeError(
                f"axis_types of a mesh is a tuple of an AxisType for each axis; got {given!r:.100}"
            )
    if len(types) != len(names):
        raise InvalidArgument(
            f"{len(types)} axis types {types} and {len(names)} axis names {names}: a mesh has one "
            "type for each axis"
        )
    return types


def read_axis_names(names: object) -> tuple[AxisName, ...]:
    """Returns the names of axes as a tuple; raises unless they are different strings."""
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
