"""Collectives that reduce: `psum`, `pmean`, `pmax`, `pmin`; `axis_index` and `axis_size`.

They take and return pytrees and are used within a function that `pmap` or `shard_map` has mapped
over an axis of that name. A tuple of names means the product of those axes, the first the slowest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from plugrt.argument_errors import with_argument_errors
from plugrt.array_api.elementwise import arithmetic
from plugrt.errors import DtypeError
from plugrt.execution import tree
from plugrt.execution.array import Array
from plugrt.execution.partition_spec import PartitionSpec
from plugrt.lax.parallel.replica_groups import (
    AxisName,
    Groups,
    axis_positions,
    channel_attributes,
    group_size,
    replica_groups,
)
from plugrt.stablehlo.bindings import ir
from plugrt.tracing.captures import as_tracer
from plugrt.tracing.emit import (
    active_trace,
    constant,
    convert,
    emit,
    hlo,
    region,
    wrap,
)
from plugrt.tracing.manual_regions import manual_region
from plugrt.tracing.trace import Trace
from plugrt.tracing.tracer import Tracer

T = TypeVar("T")


@with_argument_errors
def psum(x: T, axis_name: AxisName, *, axis_index_groups: Groups = None) -> T:
    """Returns the sum of ``x`` over the axis, the same on each device; booleans are counted.

    Over no axes at all, ``()``, it is ``x`` itself. Python scalars, the same on each device, are
    multiplied with the size of the axis, without communication: ``psum(1, 'i')`` is a Python
    integer. Shapes and numeric dtypes stay, bool becomes int32. Raises `UnboundAxis`. As
    ``jax.lax.psum``.

    >>> plugrt.pmap(lambda x: lax.psum(x, "i"), "i", devices=plugrt.devices()[:1])(xp.ones((1, 2)))
    Array([[1., 1.]], dtype=float32)
    """
    size = group_size(axis_name, axis_index_groups)

    if axis_name == ():
        return x

    def leaf(v: Any) -> Any:
        if isinstance(v, bool | np.bool_):
            return np.int32(size * v)
        if type(v) in (int, float, complex):
            return size * v
        if isinstance(v, np.generic):
            return np.multiply(v, size, dtype=v.dtype)
        v = as_tracer(v, "argument x of psum")
        v = convert(v, np.int32) if v.dtype == bool else v
        return _all_reduce(v, axis_name, axis_index_groups, hlo.add)

    result: T = tree.map(leaf, x)
    return result


@with_argument_errors
def pmean(x: T, axis_name: AxisName, *, axis_index_groups: Groups = None) -> T:
    """Returns the mean of ``x`` over the axis: `psum` divided as `array_api.divide` does.

    Shapes stay. Raises `UnboundAxis`. As ``jax.lax.pmean``.
    """
    size = group_size(axis_name, axis_index_groups)

    def divide(v: Any) -> Any:
        return v / size if type(v) in (int, float, complex) else arithmetic.divide(v, size)

    result: T = tree.map(divide, psum(x, axis_name, axis_index_groups=axis_index_groups))
    return result


@with_argument_errors
def pmax(x: T, axis_name: AxisName, *, axis_index_groups: Groups = None) -> T:
    """Returns the largest of each element over the axis.

    Shapes and dtypes stay. Raises `UnboundAxis`, and `DtypeError` for complex numbers. As
    ``jax.lax.pmax``.
    """
    return _extremum("pmax", x, axis_name, axis_index_groups, hlo.maximum)


@with_argument_errors
def pmin(x: T, axis_name: AxisName, *, axis_index_groups: Groups = None) -> T:
    """Returns the smallest of each element over the axis.

    Shapes and dtypes stay. Raises `UnboundAxis`, and `DtypeError` for complex numbers. As
    ``jax.lax.pmin``.
    """
    return _extremum("pmin", x, axis_name, axis_index_groups, hlo.minimum)


def _extremum(
    name: str, x: T, axis_name: AxisName, groups: Groups, combine: Callable[..., Any]
) -> T:
    replica_groups(axis_name, groups)

    def leaf(v: Any) -> Any:
        v = as_tracer(v, f"argument x of {name}")
        if v.dtype.kind == "c":
            raise DtypeError(f"{name} takes ordered dtypes; argument x is {v.dtype.name}")
        return _all_reduce(v, axis_name, groups, combine)

    result: T = tree.map(leaf, x)
    return result


def groups_attribute(axis_name: AxisName, groups: Groups) -> ir.Attribute:
    """Returns the replica groups of an axis as StableHLO's collectives take them."""
    table = np.asarray(replica_groups(axis_name, groups), np.int64)
    return ir.DenseIntElementsAttr.get(table)


def global_ids(trace: Trace) -> dict[str, ir.Attribute]:
    """Returns what has the groups of a collective name devices within `shard_map`."""
    channel = channel_attributes(trace)
    return {**channel, "use_global_device_ids": ir.UnitAttr.get()} if channel else {}


def _all_reduce(
    x: Tracer, axis_name: AxisName, groups: Groups, combine: Callable[..., Any]
) -> Tracer:
    trace = active_trace()
    operation = hlo.AllReduceOp(
        [x.value.type],
        [x.value],
        replica_groups=groups_attribute(axis_name, groups),
        loc=trace.location(),
        **global_ids(trace),
    )
    scalar = trace.mlir_type((), x.dtype)
    region(operation.regions[0], [scalar, scalar], lambda a, b: [emit(combine, a, b)])
    reduced: Tracer = wrap(operation)[0]
    return reduced


@with_argument_errors
def axis_index(axis_name: AxisName) -> Array:
    """Returns this device's index along the axis, an int32 scalar.

    Raises `UnboundAxis` outside of a function mapped over that axis. As ``jax.lax.axis_index``.
    """
    positions = axis_positions(axis_name)
    replica = device_number()
    uint32 = replica.dtype
    index: Tracer | None = None
    for stride, size in positions:
        along = emit(hlo.divide, replica, constant(stride, uint32)) if stride > 1 else replica
        along = emit(hlo.remainder, along, constant(size, uint32))
        if index is not None:
            along = emit(hlo.add, emit(hlo.multiply, index, constant(size, uint32)), along)
        index = along
    result: Any = convert(constant(0, uint32) if index is None else index, np.int32)
    array: Array = result  # as every traced array is one
    return array


def device_number() -> Tracer:
    """Returns which replica runs, or within `shard_map` which partition; a uint32 scalar.

    Where some axes of the mesh are left to the compiler, only a region that has all of them can
    ask.
    """
    trace = active_trace()
    if trace.mesh is None:
        return emit(hlo.replica_id)
    rest = [name for name in trace.mesh.axis_names if name not in trace.axes]
    if not rest:
        return emit(hlo.partition_id)
    number = lambda: [emit(hlo.partition_id)]  # noqa: E731
    return manual_region(trace, trace.mesh, rest, [], [], number, [PartitionSpec()])[0]


@with_argument_errors
def axis_size(axis_name: AxisName) -> int:
    """Returns the number of devices along the axis, a Python integer.

    Raises `UnboundAxis` outside of a function mapped over that axis. As ``jax.lax.axis_size``.
    """
    return group_size(axis_name)
