"""Collectives that reduce: `psum`, `pmean`, `pmax`, `pmin`; `axis_index` and `axis_size`.

They map pytrees to pytrees and are used within a function that `pmap` or `shard_map` has mapped
over an axis of that name. A tuple of names means the product of those axes, the first the slowest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from plugrt.array_api.elementwise import arithmetic
from plugrt.errors import ArgumentError, DtypeError
from plugrt.execution.arrays.array import Array
from plugrt.execution.shardings.manual_types import ManualAxisType
from plugrt.execution.shardings.partition_spec import PartitionSpec
from plugrt.execution.trees import pytrees
from plugrt.lax.parallel.replica_calls import collective
from plugrt.lax.parallel.replica_groups import (
    AxisName,
    Groups,
    as_varying,
    axis_positions,
    check_groups,
    global_ids,
    group_size,
    groups_attribute,
    is_term,
    names_of,
    replica_groups,
    wrap_collective,
)
from plugrt.lax.reductions import reduce_max, reduce_min, reduce_sum
from plugrt.tracing.argument_checks import normalize_axes
from plugrt.tracing.captures import as_tracer
from plugrt.tracing.emit import active_trace, constant, convert, emit, hlo, region, strong
from plugrt.tracing.manual_regions import manual_region
from plugrt.tracing.trace import current_trace
from plugrt.tracing.tracer import Tracer

T = TypeVar("T")


@collective
def psum(x: T, axis_name: AxisName, *, axis_index_groups: Groups = None) -> T:
    """Returns the sum of ``x`` over the axis, the same on each device; booleans are counted.

    An integer among the axes is a dimension of ``x`` itself, which is summed away: ``psum(x, 0)``,
    ``psum(x, ("i", 0))``. Over no axes at all, ``()``, it is ``x``. Python scalars, the same on
    each device, are multiplied with the size of the axis, without communication: ``psum(1, 'i')``
    is a Python integer. ``axis_index_groups`` may differ in length: then scalars are summed, too.
    Keeps shapes but for summed dimensions, and numeric dtypes; bool becomes int32. Raises
    `UnboundAxis`. As ``jax.lax.psum``.

    >>> plugrt.pmap(lambda x: lax.psum(x, "i"), "i", devices=plugrt.devices()[:1])(xp.ones((1, 2)))
    Array([[1., 1.]], dtype=float32)
    """
    names, dimensions = _split_axes("psum", axis_name, axis_index_groups)
    uneven = _is_uneven(names, axis_index_groups)
    size = None if uneven else _size(names, axis_index_groups)

    def leaf(v: Any) -> Any:
        if size is not None and not dimensions:
            if isinstance(v, bool | np.bool_):
                return np.int32(size * v)
            if type(v) in (int, float, complex):
                return size * v
            if isinstance(v, np.generic):
                return np.multiply(v, size, dtype=v.dtype)
        if dimensions:
            v = _reduce_dimensions("psum", _sum, v, dimensions)
        if names == ():
            return v
        v = count_booleans(as_tracer(v, "argument x of psum"))
        return _all_reduce("psum", v, names, axis_index_groups, hlo.add)

    result: T = x if axis_name == () else pytrees.map(leaf, x)
    return result


def count_booleans(x: Tracer) -> Tracer:
    """Returns ``x`` in the form that sums add: booleans as int32, other dtypes unchanged."""
    return convert(x, np.int32) if x.dtype == bool else x


@collective
def pmean(x: T, axis_name: AxisName, *, axis_index_groups: Groups = None) -> T:
    """Returns the mean of ``x`` over the axis: `psum` divided as `array_api.divide` does.

    Groups of different lengths divide by their own length. Shapes stay, without the dimensions over
    which it averages. Raises `UnboundAxis`. As ``jax.lax.pmean``, which accepts no dimensions, and
    divides by the length of the first group.
    """
    names, dimensions = _split_axes("pmean", axis_name, axis_index_groups)
    uneven = _is_uneven(names, axis_index_groups)
    size: Any = (
        psum(np.int32(1), names, axis_index_groups=axis_index_groups)
        if uneven
        else _size(names, axis_index_groups)
    )

    def leaf(v: Any) -> Any:
        count = size
        if dimensions:
            along = normalize_axes("pmean", dimensions, np.ndim(v))
            count = count * int(np.prod([np.shape(v)[i] for i in along]))
        total = psum(v, axis_name, axis_index_groups=axis_index_groups)
        plain = type(total) in (int, float, complex)
        return total / count if plain else arithmetic.divide(total, count)

    result: T = pytrees.map(leaf, x)
    return result


@collective
def pmax(x: T, axis_name: AxisName, *, axis_index_groups: Groups = None) -> T:
    """Returns the largest of each element over the axis.

    Keeps shapes and dtypes, except dimensions among the axes (see `psum`). Raises `UnboundAxis`,
    and `DtypeError` for complex numbers. As ``jax.lax.pmax``.
    """
    return _extremum("pmax", x, axis_name, axis_index_groups, hlo.maximum)


@collective
def pmin(x: T, axis_name: AxisName, *, axis_index_groups: Groups = None) -> T:
    """Returns the smallest of each element over the axis.

    Keeps shapes and dtypes, except dimensions among the axes (see `psum`). Raises `UnboundAxis`,
    and `DtypeError` for complex numbers. As ``jax.lax.pmin``.
    """
    return _extremum("pmin", x, axis_name, axis_index_groups, hlo.minimum)


def _extremum(
    name: str, x: T, axis_name: AxisName, groups: Groups, combine: Callable[..., object]
) -> T:
    names, dimensions = _split_axes(name, axis_name, groups)
    if names != ():
        replica_groups(names, groups)
    along = reduce_max if name == "pmax" else reduce_min

    def leaf(v: object) -> Any:
        if dimensions:
            v = _reduce_dimensions(name, along, v, dimensions)
        if names == () and current_trace() is None:
            return v
        v = as_tracer(v, f"argument x of {name}")
        if v.dtype.kind == "c":
            raise DtypeError(f"{name} takes ordered dtypes; argument x is {v.dtype.name}")
        return strong(v) if names == () else _all_reduce(name, v, names, groups, combine)

    result: T = pytrees.map(leaf, x)
    return result


def _split_axes(
    function: str, axis_name: AxisName, groups: Groups
) -> tuple[AxisName, tuple[int, ...]]:
    """Returns the names among axes, and the integers: dimensions of the array itself."""
    axes = tuple(axis_name) if isinstance(axis_name, tuple | list) else (axis_name,)
    dimensions = tuple(axis for axis in axes if type(axis) is int)
    if dimensions and groups is not None:
        raise ArgumentError(
            f"{function} takes axis_index_groups over named axes alone; got {axis_name!r}"
        )
    names = tuple(axis for axis in axes if type(axis) is not int)
    return (names if dimensions else axis_name), dimensions


def _reduce_dimensions(
    function: str, reduce: Callable[..., object], v: Any, dimensions: tuple[int, ...]
) -> object:
    return reduce(v, normalize_axes(function, dimensions, np.ndim(v)))


def _sum(v: Any, axes: tuple[int, ...]) -> object:
    return reduce_sum(v.astype(np.int32) if v.dtype == bool else v, axes)


def _size(names: AxisName, groups: Groups) -> int:
    return 1 if names == () else group_size(names, groups)


def _is_uneven(names: AxisName, groups: Groups) -> bool:
    return groups is not None and len(check_groups(groups, group_size(names))) > 1


def _all_reduce(
    function: str,
    x: Tracer,
    axis_name: AxisName,
    groups: Groups,
    combine: Callable[..., object],
) -> Tracer:
    trace = active_trace()
    if function != "psum" or not is_term(function, x, axis_name, groups):
        x = as_varying(function, x, axis_name)
    operation = hlo.AllReduceOp(
        [x.value.type],
        [x.value],
        replica_groups=groups_attribute(axis_name, groups),
        loc=trace.location(),
        **global_ids(trace),
    )
    scalar = trace.mlir_type((), x.dtype)
    region(operation.regions[0], [scalar, scalar], lambda a, b: [emit(combine, a, b)])
    mat = x.mat if groups is not None else x.mat.moved(names_of(axis_name), "invarying")
    return wrap_collective(trace, operation, mat)


@collective
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
    if (types := result.trace.types) is not None:
        types.set_mat(result.value, ManualAxisType(varying=frozenset(names_of(axis_name))))
    array: Array = result  # every traced array counts as one
    return array


def device_number() -> Tracer:
    """Returns the number of the running replica, or within `shard_map` partition; a uint32 scalar.

    If some axes of the mesh are left to the compiler, it is read in a region over all axes.
    """
    trace = active_trace()
    if trace.mesh is None:
        return wrap_collective(trace, hlo.replica_id(loc=trace.location()))
    rest = [name for name in trace.mesh.axis_names if name not in trace.axes]
    if not rest:
        return emit(hlo.partition_id)
    number: Tracer = manual_region(
        trace, trace.mesh, rest, [], [], lambda: (emit(hlo.partition_id), [PartitionSpec()])
    )
    return number


@collective
def axis_size(axis_name: AxisName) -> int:
    """Returns the number of devices along the axis, a Python integer.

    Raises `UnboundAxis` outside of a function mapped over that axis. As ``jax.lax.axis_size``.
    """
    return group_size(axis_name)
