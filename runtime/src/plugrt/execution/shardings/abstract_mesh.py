"""`AbstractMesh`: the sizes and names of a mesh's axes."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from plugrt.errors import ArgumentTypeError, InvalidArgument
from plugrt.execution.shardings.partition_spec import AxisName
from plugrt.frames.argument_errors import with_argument_errors


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
        self._names = read_axis_names(axis_names)
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


def read_axis_names(names: object) -> tuple[AxisName, ...]:
    """Returns the names of axes as a tuple; raises for other than different strings."""
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
