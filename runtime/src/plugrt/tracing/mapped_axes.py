"""`MappedAxes`: the axes that `pmap` and `shard_map` have bound where a function is traced."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from plugrt.errors import UnboundAxis
from plugrt.execution.shardings.abstract_mesh import AbstractMesh

AxisKey: TypeAlias = Any
"""The name of a mapped axis, which may be any hashable value, or `UnnamedAxis`."""


@dataclass(frozen=True, slots=True)
class UnnamedAxis:
    """The key of a mapped axis that collectives cannot name: it has no name, or is shadowed."""

    depth: int


def bind_axis(outer: Mapping[AxisKey, int], name: Hashable | None, size: int) -> dict[AxisKey, int]:
    """Returns the mapped axes with one more, the innermost; one of the same name is shadowed."""
    axes = {
        UnnamedAxis(depth) if key == name else key: n
        for depth, (key, n) in enumerate(outer.items())
    }
    return {**axes, (UnnamedAxis(len(axes)) if name is None else name): size}


class MappedAxes:
    """The mapped axes of a trace."""

    def __init__(self, axes: Mapping[AxisKey, int], mesh: AbstractMesh | None) -> None:
        self.axes: dict[AxisKey, int] = dict(axes)
        """Axis names that pmap or shard_map has bound, to their sizes, outermost first."""
        self.mesh = mesh
        """The mesh of a surrounding shard_map, whose devices collectives number as partitions."""
        self.replicas = math.prod(self.axes.values()) if mesh is None else 1
        """How many replicas the axes around the program need."""
        self.numbers_replicas = False
        """Whether any operation refers to replicas by their numbers, or reads its own."""

    def axis_size(self, name: AxisKey) -> int:
        """Returns the size of a mapped axis; `UnboundAxis` lists the axes there are."""
        if name not in self.axes:
            known = ", ".join(repr(a) for a in self.axes if type(a) is not UnnamedAxis) or "none"
            raise UnboundAxis(
                f"unbound axis name: {name!r}; axes that a surrounding pmap or shard_map has "
                f"bound: {known}"
            )
        return self.axes[name]

    @property
    def numbered_axes(self) -> Mapping[AxisKey, int]:
        """The axes that number devices in row-major order: those bound, or all of the mesh."""
        return self.axes if self.mesh is None else self.mesh.shape

    @contextlib.contextmanager
    def mapped(self, mesh: AbstractMesh, names: Iterable[str]) -> Iterator[None]:
        """Binds axes of a mesh, in addition to the bound ones, for as long as the context lasts."""
        outer = self.axes, self.mesh
        bound = {*names, *(self.axes if self.mesh is not None else ())}
        self.axes = {name: mesh.shape[name] for name in mesh.axis_names if name in bound}
        self.mesh = mesh
        try:
            yield
        finally:
            self.axes, self.mesh = outer

    @contextlib.contextmanager
    def replicated(self, name: Hashable | None, size: int) -> Iterator[tuple[AxisKey, int]]:
        """Binds the axis of a nested pmap as the innermost, for as long as the context lasts.

        Yields its key, and how many replicas it needs together with the surrounding axes. It
        shadows a surrounding axis of the same name.
        """
        outer = self.axes
        self.axes = bind_axis(outer, name, size)
        try:
            yield next(reversed(self.axes)), math.prod(self.axes.values())
        finally:
            self.axes = outer
