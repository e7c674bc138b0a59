"""Reads the types and the shardings of arguments and results in the files of ``jax.export``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

import ml_dtypes
import numpy as np

from plugrt.execution.arrays.aval import Aval, intern_host_aval
from plugrt.execution.shardings.abstract_mesh import AbstractMesh
from plugrt.execution.shardings.named_sharding import NamedSharding
from plugrt.execution.shardings.partition_spec import PartitionSpec
from plugrt.programs.exported import Dimension, StatedSharding
from plugrt.wire.flatbuffers import Table, require

T = TypeVar("T")


class ArrayFields(NamedTuple):
    """Field numbers of an export for its arguments, or for its results.

    ``avals`` and ``shardings`` are the fields that JAX wrote until 2026. The others hold indices
    into lists of unique values in the file.
    """

    avals: int
    shardings: int
    aval_numbers: int
    sharding_numbers: int


ARGUMENTS = ArrayFields(3, 7, 22, 24)
RESULTS = ArrayFields(5, 8, 23, 25)

# Field numbers, by table.
_UNIQUE_AVALS, _UNIQUE_MESHES, _UNIQUE_SHARDINGS = range(19, 22)
_AVAL_KIND, _AVAL_SHAPE, _AVAL_DTYPE = range(3)
_SHARDING_OF_HLO, _SHARDING_NAMED = 1, 2
_NAMED_MESH, _NAMED_SPEC, _NAMED_MEMORY_KIND, _NAMED_MESH_NUMBER = range(4)
_MESH_SIZES, _MESH_NAMES = range(2)
_SPEC_PARTITIONS, _SPEC_UNREDUCED = 0, 2
_PARTITION_AXES = 0

_DTYPES = {
    0: "bool", 1: "int8", 2: "int16", 3: "int32", 4: "int64",
    5: "uint8", 6: "uint16", 7: "uint32", 8: "uint64",
    9: "float16", 10: "float32", 11: "float64", 12: "complex64", 13: "complex128",
    14: "bfloat16", 15: "int4", 16: "uint4", 17: "float8_e4m3b11fnuz", 18: "float8_e4m3fn",
    19: "float8_e4m3fnuz", 20: "float8_e5m2", 21: "float8_e5m2fnuz", 22: "bool",
    23: "float8_e4m3", 24: "float8_e3m4", 25: "float8_e8m0fnu", 26: "float4_e2m1fn",
}  # fmt: skip
"""Values of JAX's enumeration to dtypes. 22 is ``float0``, which modules have as ``bool``."""
_KEYS = {27: 2, 28: 4, 29: 4}
"""Values for typed keys, to the size of their ``uint32`` dimension in modules."""


def read_avals(table: Table, fields: ArrayFields, count: int) -> tuple[Aval, ...]:
    """Returns the types of the ``count`` arguments or results.

    Raises `ValueError` for data that JAX does not write.
    """
    chosen = table.scalars(fields.aval_numbers, "I")
    if chosen:
        unique = [_read_aval(aval) for aval in table.tables(_UNIQUE_AVALS)]
        found = _choose(unique, chosen, "types")
    else:
        found = [_read_aval(aval) for aval in table.tables(fields.avals)]
    if len(found) != count:
        raise ValueError(f"it has {len(found)} types for {count} arrays")
    return tuple(found)


def _choose(unique: Sequence[T], chosen: Iterable[int], what: str) -> list[T]:
    chosen = list(chosen)
    if any(i >= len(unique) for i in chosen):
        raise ValueError(f"it has {len(unique)} {what} and refers to number {max(chosen)}")
    return [unique[i] for i in chosen]


def _read_aval(table: Table) -> Aval:
    # Symbolic dimensions are strings, until `plugrt.stablehlo.refinement` replaces them by sizes.
    shape: tuple[object, ...] = tuple(map(_read_dimension, table.texts(_AVAL_SHAPE)))
    number = table.scalar(_AVAL_DTYPE, "b")
    if number in _KEYS:
        return intern_host_aval((*shape, _KEYS[number]), np.dtype(np.uint32))
    name = _DTYPES.get(number)
    if name is None:
        raise ValueError(f"it has an array of the dtype number {number}")
    return intern_host_aval(shape, np.dtype(getattr(ml_dtypes, name, None) or name))


def _read_dimension(text: str) -> Dimension:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else text


def read_shardings(
    table: Table, fields: ArrayFields, avals: Sequence[Aval], devices: int
) -> tuple[StatedSharding | None, ...]:
    """Returns the shardings of arguments or results; None where the file states none.

    Raises `ValueError` for data that JAX does not write, or no longer writes.
    """
    chosen = table.scalars(fields.sharding_numbers, "I")  # 0: not stated
    found: list[StatedSharding | None]
    if chosen:
        meshes = [_read_mesh(each) for each in table.tables(_UNIQUE_MESHES)]
        unique = [_read_named(each, meshes, devices) for each in table.tables(_UNIQUE_SHARDINGS)]
        found = _choose([None, *unique], chosen, "shardings")
    else:
        found = [_read_sharding(each, devices) for each in table.tables(fields.shardings)]
    found = found or [None] * len(avals)
    if len(found) != len(avals):
        raise ValueError(f"it has {len(found)} shardings for {len(avals)} arrays")
    for sharding, aval in zip(found, avals, strict=True):
        if isinstance(sharding, NamedSharding) and len(sharding.spec) > len(aval.shape):
            raise ValueError(
                f"it divides an array of type {aval.tensor_type} by more dimensions than it has"
            )
    return tuple(found)


def _read_sharding(table: Table, devices: int) -> StatedSharding | None:
    named = table.table(_SHARDING_NAMED)
    if named is not None:
        return _read_named(named, [], devices)
    return table.content(_SHARDING_OF_HLO) or None  # until March 2026


def _read_named(table: Table, meshes: Sequence[AbstractMesh], devices: int) -> NamedSharding:
    [mesh] = (
        _choose(meshes, [table.scalar(_NAMED_MESH_NUMBER, "I")], "meshes")
        if meshes
        else [_read_mesh(require(table.table(_NAMED_MESH), "mesh for a sharding"))]
    )
    # A mesh without axes belongs to an array on one device.
    if not mesh.empty and mesh.size != devices:
        raise ValueError(f"it is for {devices} devices, and has a mesh of {mesh.size}")
    spec = require(table.table(_NAMED_SPEC), "specification for a sharding")
    if spec.texts(_SPEC_UNREDUCED):
        raise ValueError("it has arrays that are partial sums on each device (unreduced)")
    entries = [tuple(each.texts(_PARTITION_AXES)) or None for each in spec.tables(_SPEC_PARTITIONS)]
    memory_kind = table.text(_NAMED_MEMORY_KIND)
    return NamedSharding(mesh, PartitionSpec(*entries), memory_kind=memory_kind)


def _read_mesh(table: Table) -> AbstractMesh:
    return AbstractMesh(table.scalars(_MESH_SIZES, "I"), table.texts(_MESH_NAMES))
