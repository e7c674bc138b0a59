"""Reads the groups of devices of collectives, as rows of ids or mesh axes; renumbers replicas."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from plugrt.errors import ProgramError
from plugrt.stablehlo.attributes import attribute_names
from plugrt.stablehlo.bindings import hlo, ir, shardy
from plugrt.stablehlo.regions import operations_within

Rows = list[list[int]]


def read_replica_groups(attribute: ir.Attribute, symbols: dict[str, object]) -> Rows:
    """Returns the groups of a ``replica_groups`` attribute, row by row; -1 fills a short one.

    ``#stablehlo.replica_group_mesh_axes`` (StableHLO 1.13, which JAX 0.12 writes) names axes of a
    mesh instead: a group has the devices that differ only in these, in the order of the axes, the
    slowest first. ``symbols`` are the module's operations by name, for a Shardy mesh among them.
    Raises `ProgramError` for axes that the mesh lacks.
    """
    if isinstance(attribute, ir.DenseElementsAttr):
        return read_table(attribute)
    return _read_axes(hlo.ReplicaGroupMeshAxesAttr(attribute), symbols)


def read_table(attribute: ir.DenseElementsAttr) -> Rows:
    """Returns a two-dimensional attribute of integers, row by row."""
    rows, columns = ir.RankedTensorType(attribute.type).shape
    splat = attribute.is_splat
    flat = (
        [int(attribute.get_splat_value().value)] * (rows * columns)
        if splat and rows * columns
        else list(map(int, attribute))
    )
    return [flat[r * columns : (r + 1) * columns] for r in range(rows)]


def _read_axes(attribute: Any, symbols: dict[str, object]) -> Rows:
    sizes, devices = _read_mesh(attribute.mesh, symbols)
    # An axis of which only a part is named is split in three: the factor before the part, the part,
    # and the rest.
    shape: list[int] = []
    places: dict[tuple[str, int], int] = {}
    named = [_read_axis(axis, sizes) for axis in attribute.axes]
    for name, size in sizes.items():
        cuts = {1, size}
        for other, before, count in named:
            if other == name:
                cuts |= {before, before * count}
        ordered = sorted(cuts)
        for before, after in pairwise(ordered):
            places[name, before] = len(shape)
            shape.append(after // before)
    joined = [place for axis in named for place in _parts(*axis, places, shape)]
    rest = [place for place in range(len(shape)) if place not in joined]
    count = math.prod(shape[place] for place in joined)
    rows: Rows = (
        np.array(devices).reshape(shape).transpose(rest + joined).reshape(-1, count).tolist()
    )
    return rows


def _read_mesh(mesh: ir.Attribute, symbols: dict[str, Any]) -> tuple[dict[str, int], list[int]]:
    """Returns the sizes of a mesh's axes by name, and its devices, row-major."""
    if isinstance(mesh, ir.FlatSymbolRefAttr):  # the symbol of a Shardy mesh
        sdy = shardy()
        stated = sdy.MeshAttr(symbols[mesh.value].attributes["mesh"])
        sizes = {axis.name: axis.size for axis in map(sdy.MeshAxisAttr, stated.axes)}
        listed = list(stated.device_ids)
    else:
        stated = hlo.MeshAttr(mesh)
        sizes = {axis.name: axis.size for axis in map(hlo.MeshAxisAttr, stated.axes)}
        found = stated.device_ids
        listed = [] if found is None else list(map(int, ir.DenseIntElementsAttr(found)))
    return sizes, listed or list(range(math.prod(sizes.values())))


def _read_axis(attribute: ir.Attribute, sizes: dict[str, int]) -> tuple[str, int, int]:
    """Returns an axis's name, the product of the factors before it, and its size."""
    axis = hlo.AxisRefAttr(attribute)
    name = axis.name
    if name not in sizes:
        raise ProgramError(f"a collective is over the axis {name!r}; its mesh has {list(sizes)}")
    if axis.sub_axis_info is None:
        return name, 1, sizes[name]
    part = hlo.SubAxisInfoAttr(axis.sub_axis_info)
    if sizes[name] % (part.pre_size * part.size):
        raise ProgramError(f"{attribute} does not divide an axis of size {sizes[name]} evenly")
    return name, part.pre_size, part.size


def _parts(
    name: str, before: int, count: int, places: dict[tuple[str, int], int], shape: list[int]
) -> list[int]:
    """Returns the dimensions of the shape that make up an axis, the slowest first."""
    found, reached = [], before
    while reached < before * count:
        place = places[name, reached]
        found.append(place)
        reached *= shape[place]
    return found


_MARK = "replicas_here"
_TABLES = ("replica_groups", "source_target_pairs")


def mark_replicas(operation: Any, replicas: int) -> None:
    """Marks an operation that refers to replicas with the number of replicas at its creation."""
    number = ir.IntegerType.get_signless(64, operation.context)
    operation.attributes[_MARK] = ir.IntegerAttr.get(number, replicas)


def number_replicas(module: ir.Module, replicas: int) -> None:
    """Numbers the replicas in a module for a program of ``replicas``, and removes the marks.

    In place. The number must be a multiple of each mark.
    """
    for operation in [*operations_within(module.operation)]:
        if _MARK in operation.attributes:
            here = ir.IntegerAttr(operation.attributes[_MARK]).value
            del operation.attributes[_MARK]
            if here != replicas:
                _widen(operation, replicas // here)


def _widen(operation: Any, each: int) -> None:
    """Changes an operation to ``each`` times as many replicas."""
    if operation.name == "stablehlo.replica_id":
        _divide_number(operation, each)
        return
    for name in set(_TABLES).intersection(attribute_names(operation)):
        rows = np.array(read_table(ir.DenseIntElementsAttr(operation.attributes[name])))
        copies = [np.where(rows < 0, -1, rows * each + i) for i in range(each)]
        table = np.stack(copies, axis=1).reshape(-1, rows.shape[1]).astype(np.int64)
        operation.attributes[name] = ir.DenseIntElementsAttr.get(table, context=operation.context)


def _divide_number(operation: Any, each: int) -> None:
    """Divides the number of a replica by ``each`` for all its users."""
    number = operation.results[0]
    with operation.location, ir.InsertionPoint.after(operation):
        count = ir.DenseElementsAttr.get_splat(
            number.type, ir.IntegerAttr.get(ir.RankedTensorType(number.type).element_type, each)
        )
        row = hlo.divide(number, hlo.constant(count))
    number.replace_all_uses_except(row, getattr(row.owner, "operation", row.owner))
