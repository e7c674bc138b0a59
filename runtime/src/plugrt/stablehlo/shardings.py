"""Shardings in programs: Shardy's attributes, and the text that GSPMD has for the same."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plugrt.errors import ProgramError, Unimplemented
from plugrt.stablehlo.bindings import ir, shardy

Slices = tuple[slice, ...]


@dataclass(frozen=True)
class Axis:
    """A mesh axis, or a part of one: coordinates are ``position // divisor % size``."""

    name: str
    size: int
    divisor: int


@dataclass(frozen=True)
class TensorSharding:
    """For each dimension the axes that it is divided over, the slowest first."""

    dimensions: tuple[tuple[Axis, ...], ...]
    positions: tuple[int, ...]
    """For each device (partition id) its position in the mesh, row-major."""

    def slices(self, shape: Sequence[int], axes: Collection[str] | None = None) -> list[Slices]:
        """Returns the part of an array that each device holds, by partition id.

        ``axes`` are the names of those that count, None for all. Raises `Unimplemented` where a
        dimension is not a multiple of the parts.
        """
        kept = [
            [axis for axis in own if axes is None or axis.name in axes]
            for own in self.dimensions[: len(shape)]
        ]
        kept += [[] for _ in range(len(shape) - len(kept))]
        for n, own in zip(shape, kept, strict=True):
            if n % math.prod(axis.size for axis in own):
                raise Unimplemented(
                    f"an array of shape {tuple(shape)} is divided over axes "
                    f"{[[a.name for a in own] for own in kept]} that do not divide it evenly"
                )
        return [
            tuple(_part(n, own, position) for n, own in zip(shape, kept, strict=True))
            for position in self.positions
        ]


def _part(size: int, axes: Sequence[Axis], position: int) -> slice:
    index = 0
    for axis in axes:
        index = index * axis.size + position // axis.divisor % axis.size
    width = size // math.prod(axis.size for axis in axes)
    return slice(index * width, (index + 1) * width)


def read_shardy(attribute: ir.Attribute, meshes: dict[str, Any]) -> TensorSharding:
    """Reads an ``#sdy.sharding``; ``meshes`` has the ``sdy.mesh`` operations by name."""
    sdy = shardy()
    sharding = sdy.TensorShardingAttr(attribute)
    reference = sharding.mesh_or_ref
    if isinstance(reference, ir.FlatSymbolRefAttr):
        reference = meshes[reference.value].attributes["mesh"]
    mesh = sdy.MeshAttr(reference)
    sizes = {axis.name: axis.size for axis in map(sdy.MeshAxisAttr, mesh.axes)}
    count = math.prod(sizes.values())
    ids = list(mesh.device_ids) or list(range(count))
    if sorted(ids) != list(range(count)):
        raise ProgramError(f"the mesh {mesh} does not number its {count} devices from 0")
    names = list(sizes)
    divisors = {n: math.prod(sizes[m] for m in names[i + 1 :]) for i, n in enumerate(names)}

    def axis_of(reference: Any) -> Axis:
        reference = sdy.AxisRefAttr(reference)
        name = reference.name
        if reference.sub_axis_info is None:
            return Axis(name, sizes[name], divisors[name])
        part = sdy.SubAxisInfoAttr(reference.sub_axis_info)
        inner = sizes[name] // (part.pre_size * part.size)
        return Axis(name, part.size, divisors[name] * inner)

    dimensions = tuple(
        tuple(map(axis_of, dimension.axes))
        for dimension in map(sdy.DimensionShardingAttr, sharding.dimension_shardings)
    )
    return TensorSharding(dimensions, tuple(int(i) for i in np.argsort(ids)))


def read_shardy_list(attribute: ir.Attribute, meshes: dict[str, Any]) -> list[TensorSharding]:
    """Reads the shardings of several values."""
    sdy = shardy()
    shardings = sdy.TensorShardingPerValueAttr(attribute).shardings
    return [read_shardy(sharding, meshes) for sharding in shardings]


def read_manual_axes(attribute: ir.Attribute) -> list[str]:
    """Reads the names of the axes over which an ``sdy.manual_computation`` is written out."""
    return re.findall(r'"([^"]+)"', str(attribute))


_TILES = re.compile(r"devices=\[([\d,]+)\](?:<=\[([\d,]+)\](?:T\(([\d,]+)\))?|([\d,]+))")


def read_gspmd(text: str, devices: int) -> TensorSharding:
    """Reads XLA's text of a sharding, such as ``{devices=[2,1]<=[2]}`` or ``{replicated}``."""
    found = _TILES.search(text)
    if found is None:
        if "replicated" not in text or "maximal" in text:
            raise Unimplemented(f"the sharding {text!r} is neither of tiles nor replicated")
        return TensorSharding((), (0,) * devices)
    tiles, shape, order, listed = found.groups()
    sizes = [int(n) for n in tiles.split(",")]
    if listed:
        ids = np.array([int(n) for n in listed.split(",")])
    else:
        ids = np.arange(math.prod(sizes)).reshape([int(n) for n in shape.split(",")])
        ids = ids.transpose([int(n) for n in order.split(",")] if order else None).reshape(-1)
    axes = [
        (Axis(str(i), n, math.prod(sizes[i + 1 :])),) if n > 1 else () for i, n in enumerate(sizes)
    ]
    if "last_tile_dim_replicate" in text:
        axes = axes[:-1]
    return TensorSharding(tuple(axes), tuple(int(i) for i in np.argsort(ids)))
