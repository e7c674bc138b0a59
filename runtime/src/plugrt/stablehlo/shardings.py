"""Reads shardings in programs: Shardy's attributes and GSPMD's text."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plugrt.errors import ProgramError, Unimplemented
from plugrt.stablehlo.bindings import ir, register_shardy, shardy
from plugrt.stablehlo.regions import operations_within

Slices = tuple[slice, ...]
_MOST_DEVICES = 1 << 20


@dataclass(frozen=True)
class Axis:
    """A mesh axis, or a part of one: coordinates are ``position // divisor % size``."""

    name: str
    size: int
    divisor: int


@dataclass(frozen=True)
class TensorSharding:
    """For each dimension the axes that divide it, the slowest first."""

    dimensions: tuple[tuple[Axis, ...], ...] = ()
    devices: tuple[int, ...] = ()
    """For each position in the mesh, row-major, the device (partition id); () means any mesh."""
    summed: tuple[Axis, ...] = ()
    """The axes along which devices hold terms whose sum is the array (``unreduced``)."""

    @property
    def counts(self) -> list[int]:
        """The number of parts of each dimension."""
        return [math.prod(axis.size for axis in own) for own in self.dimensions]

    def slices(
        self, shape: Sequence[int], partitions: int, axes: Collection[str] | None = None
    ) -> list[Slices]:
        """Returns the part of an array that each device holds, by partition id.

        ``axes`` are the names of the axes that count, None for all. Raises `ProgramError` if the
        mesh has other devices than the ``partitions``, and `Unimplemented` if a dimension is not a
        multiple of the parts.
        """
        devices = self.devices or tuple(range(partitions))
        if sorted(devices) != list(range(partitions)):
            raise ProgramError(
                f"a sharding is over the devices {_shorten(devices)}; the program was compiled for "
                f"{partitions} partitions, which are numbered from 0"
            )
        kept = [
            [axis for axis in own if axes is None or axis.name in axes]
            for own in self.dimensions[: len(shape)]
        ]
        kept += [[] for _ in range(len(shape) - len(kept))]
        for i, (n, own) in enumerate(zip(shape, kept, strict=True)):
            parts = math.prod(axis.size for axis in own)
            if n % parts:
                raise Unimplemented(
                    f"dimension {i} of an array of shape {tuple(shape)} is divided into {parts} "
                    f"parts, and {n} is no multiple of {parts}: the last part would have to be "
                    f"padded, which XLA does, and plugrt does not (nor JAX, for what it puts)"
                )
        positions = np.argsort(devices).tolist()
        return [
            tuple(_part(n, own, position) for n, own in zip(shape, kept, strict=True))
            for position in positions
        ]

    def terms(self, partitions: int, axes: Collection[str] | None = None) -> list[int]:
        """Returns the index of the term of its part that each device holds, by partition id."""
        kept = [axis for axis in self.summed if axes is None or axis.name in axes]
        if not kept:
            return [0] * partitions
        return [_index(kept, position) for position in np.argsort(self.devices).tolist()]

    def tile(self, position: int) -> tuple[int, ...]:
        """Returns for each dimension the index of the part at a position of the mesh."""
        return tuple(_index(own, position) for own in self.dimensions)

    def term(self, position: int) -> int:
        """Returns the index of the term at a position of the mesh."""
        return _index(self.summed, position)


WHOLE = TensorSharding()
"""The sharding of a replicated array."""


def _shorten(devices: Sequence[int]) -> str:
    return f"{list(devices[:8])}{' and so on' if len(devices) > 8 else ''}"


def _index(axes: Sequence[Axis], position: int) -> int:
    index = 0
    for axis in axes:
        index = index * axis.size + position // axis.divisor % axis.size
    return index


def _part(size: int, axes: Sequence[Axis], position: int) -> slice:
    index, width = _index(axes, position), size // math.prod(axis.size for axis in axes)
    return slice(index * width, (index + 1) * width)


def read_shardy(
    attribute: ir.Attribute, meshes: dict[str, object], *, unreduced: bool = False
) -> TensorSharding:
    """Reads an ``#sdy.sharding``; ``meshes`` has the ``sdy.mesh`` operations by name.

    Without ``unreduced`` an array with partial sums on the devices raises `Unimplemented`.
    """
    sdy = shardy()
    sharding = sdy.TensorShardingAttr(attribute)
    summed = list(sharding.unreduced_axes)
    if summed and not unreduced:
        raise Unimplemented(f"the sharding {attribute} leaves partial sums on the devices")
    sizes, divisors, devices = _read_mesh(sharding.mesh_or_ref, meshes)

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
    return TensorSharding(dimensions, devices, tuple(map(axis_of, summed)))


def _read_mesh(
    reference: object, meshes: Mapping[str, Any]
) -> tuple[dict[str, int], dict[str, int], tuple[int, ...]]:
    """Returns the sizes and the divisors of a mesh's axes by name, and its devices."""
    sdy = shardy()
    if isinstance(reference, ir.FlatSymbolRefAttr):
        reference = meshes[reference.value].attributes["mesh"]
    mesh = sdy.MeshAttr(reference)
    sizes = {axis.name: axis.size for axis in map(sdy.MeshAxisAttr, mesh.axes)}
    names = list(sizes)
    divisors = {n: math.prod(sizes[m] for m in names[i + 1 :]) for i, n in enumerate(names)}
    # A mesh without axes matches any devices; with one device id, only that device.
    every = range(math.prod(sizes.values())) if sizes else ()
    return sizes, divisors, tuple(mesh.device_ids) or tuple(every)


def mesh_axes(reference: object, meshes: Mapping[str, object]) -> dict[str, int]:
    """Returns the sizes of a mesh's axes by name; ``reference`` is the mesh or its symbol."""
    return _read_mesh(reference, meshes)[0]


def read_peers(
    attribute: ir.Attribute, meshes: dict[str, object], axes: Collection[str], partitions: int
) -> list[list[int]]:
    """Returns for each partition itself and those that differ from it only along ``axes``.

    ``attribute`` has the shardings of several values over one mesh. Without a value each partition
    is alone.
    """
    shardings = shardy().TensorShardingPerValueAttr(attribute).shardings
    if not len(shardings):
        return [[i] for i in range(partitions)]
    first = shardy().TensorShardingAttr(shardings[0])
    sizes, divisors, devices = _read_mesh(first.mesh_or_ref, meshes)
    others = [n for n in sizes if n not in axes]
    groups: dict[tuple[int, ...], list[int]] = {}
    for position, device in enumerate(devices):
        at = tuple(position // divisors[n] % sizes[n] for n in others)
        groups.setdefault(at, []).append(device)
    peers = {device: group for group in groups.values() for device in group}
    return [peers[i] for i in range(partitions)]


def constrain(value: ir.Value, text: str, location: ir.Location) -> ir.Value:
    """Returns a value constrained to the sharding in a Shardy attribute's text."""
    register_shardy(location.context)
    attribute = ir.Attribute.parse(text, location.context)
    constrained: ir.Value = shardy().sharding_constraint(value, attribute, loc=location)
    return constrained


def drop_constraints(module: ir.Module) -> None:
    """Removes sharding constraints, which backends do not expect in programs for one device."""
    for operation in [*operations_within(module.operation)]:
        if operation.name == "sdy.sharding_constraint":
            operation.results[0].replace_all_uses_with(operation.operands[0])
            operation.erase()


def read_shardy_list(
    attribute: ir.Attribute, meshes: dict[str, object], *, unreduced: bool = False
) -> list[TensorSharding]:
    """Reads the shardings of several values, as `read_shardy`."""
    sdy = shardy()
    shardings = sdy.TensorShardingPerValueAttr(attribute).shardings
    return [read_shardy(sharding, meshes, unreduced=unreduced) for sharding in shardings]


def read_manual_axes(attribute: ir.Attribute) -> list[str]:
    """Reads the names of the manual axes of an ``sdy.manual_computation``."""
    return re.findall(r'"([^"]+)"', str(attribute))


_TILES = re.compile(
    r"\{devices=\[(\d[\d,]*)\](?:<=\[(\d[\d,]*)\](?:T\((\d[\d,]*)\))?|(\d[\d,]*))"
    r"( last_tile_dim_replicate| last_tile_dims=\{replicated\})?\}"
)


def read_gspmd(text: str, partitions: int) -> TensorSharding:
    """Reads XLA's text of a sharding, such as ``{devices=[2,1]<=[2]}`` or ``{replicated}``.

    Raises `Unimplemented` for other kinds (``maximal``, ``manual``, tuples), and `ProgramError` for
    one that is not over the ``partitions``.
    """
    if text == "{replicated}":
        return WHOLE
    found = _TILES.fullmatch(text)
    if found is None:
        raise Unimplemented(f"the sharding {text!r:.100} is neither of tiles nor replicated")
    tiles, shape, order, listed, copies = found.groups()
    sizes = _numbers(tiles)
    devices = _numbers(listed) if listed else _iota(_numbers(shape), order)
    if math.prod(sizes) != partitions or sorted(devices) != list(range(partitions)):
        raise ProgramError(
            f"the sharding {text!r:.100} is not over the program's {partitions} partitions"
        )
    axes = [
        (Axis(str(i), n, math.prod(sizes[i + 1 :])),) if n > 1 else () for i, n in enumerate(sizes)
    ]
    return TensorSharding(tuple(axes[:-1] if copies else axes), tuple(devices))


def _numbers(text: str) -> list[int]:
    return [int(n) for n in text.split(",") if n]


def _iota(shape: Sequence[int], order: str | None) -> list[int]:
    """Returns 0, 1, 2, … in a shape, transposed by ``order``, and flattened row-major.

    [] for an invalid order, and for more elements than any machine has devices.
    """
    count, axes = math.prod(shape), list(range(len(shape)))
    axes = _numbers(order) if order else axes
    if count > _MOST_DEVICES or sorted(axes) != list(range(len(shape))):
        return []
    ids: list[int] = np.arange(count).reshape(shape).transpose(axes).reshape(-1).tolist()
    return ids
