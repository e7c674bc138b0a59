"""Collectives that move data: `all_gather`, `ppermute`, `all_to_all`, `psum_scatter`…

As in `plugrt.lax.parallel.all_reduce`, they map pytrees, within a function mapped by `pmap`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import TypeVar

import numpy as np

from plugrt.errors import ArgumentError, ArgumentTypeError, ShapeError, Unimplemented
from plugrt.execution.trees import pytrees
from plugrt.interface import TensorType
from plugrt.lax.parallel.all_reduce import axis_size, count_booleans
from plugrt.lax.parallel.replica_calls import collective
from plugrt.lax.parallel.replica_groups import (
    AxisName,
    Groups,
    as_varying,
    channel_attributes,
    global_ids,
    group_size,
    groups_attribute,
    is_term,
    names_of,
    replica_groups,
    wrap_collective,
)
from plugrt.stablehlo.bindings import ir
from plugrt.tracing.captures import as_tracer
from plugrt.tracing.emit import (
    active_trace,
    emit,
    hlo,
    region,
    reshape,
    strong,
    with_weakness,
)
from plugrt.tracing.key_words import by_words
from plugrt.tracing.tracer import Tracer

T = TypeVar("T")


@collective
def all_gather(
    x: T,
    axis_name: AxisName,
    *,
    axis_index_groups: Groups = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> T:
    """Returns each device's ``x``, in the order of the axis, stacked along a new ``axis``.

    With ``tiled`` they are joined along the existing ``axis`` instead. Over no axes at all, ``()``,
    it is ``x`` itself. Any dtype. ``to`` is the type of the result along the axis, within
    `shard_map`: 'varying' (although all devices have the same), 'invarying', or 'reduced'. Raises
    `UnboundAxis`, `ShapeError` for an ``axis`` out of range, `ArgumentError` for another ``to`` and
    for an ``x`` that is unreduced or reduced, and `Unimplemented` for groups with another ``to``
    than 'varying'. As ``jax.lax.all_gather``.
    """
    if to not in ("varying", "invarying", "reduced"):
        raise ArgumentError(
            f"to of all_gather is 'varying', 'invarying' or 'reduced'; got {to!r:.60}"
        )
    if to != "varying" and axis_index_groups is not None:
        raise Unimplemented(
            f"all_gather with axis_index_groups and to={to!r}: groups get different arrays; "
            "leave one out"
        )
    size = group_size(axis_name, axis_index_groups)

    def leaf(v: Tracer) -> Tracer:
        if axis_name == ():
            return v
        v = as_varying("all_gather", v, axis_name)
        mat = v.mat.moved(names_of(axis_name), to)
        at = _axis(axis, v.ndim if tiled else v.ndim + 1, "axis", "all_gather")
        if not tiled:
            v = reshape(v, (*v.shape[:at], 1, *v.shape[at:]))
        shape = (*v.shape[:at], v.shape[at] * size, *v.shape[at + 1 :])
        trace = active_trace()
        operation = hlo.AllGatherOp(
            [trace.mlir_type(shape, v.dtype)],
            [v.value],
            all_gather_dim=at,
            replica_groups=groups_attribute(axis_name, axis_index_groups),
            loc=trace.location(),
            **global_ids(trace),
        )
        return wrap_collective(trace, operation, mat)

    return _map_leaves("all_gather", leaf, x)


@collective
def ppermute(x: T, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> T:
    """Returns the ``x`` of the device that is this one's source in the pairs (source, target).

    Devices that are no target get zeros. Any shape and dtype, which stay. Raises `UnboundAxis`, and
    `ArgumentError` for an index out of range or named twice. As ``jax.lax.ppermute``.
    """
    pairs = read_pairs("ppermute", axis_name, perm)
    rows = replica_groups(axis_name)
    table = np.array([(row[s], row[t]) for row in rows for s, t in pairs], np.int64).reshape(-1, 2)

    def leaf(v: Tracer) -> Tracer:
        trace = active_trace()
        v = as_varying("ppermute", v, axis_name)
        operation = hlo.CollectivePermuteOp(
            v.value,
            ir.DenseIntElementsAttr.get(table),
            loc=trace.location(),
            **channel_attributes(trace),
        )
        return wrap_collective(trace, operation, v.mat)

    return _map_leaves("ppermute", leaf, x)


def read_pairs(
    function: str, axis_name: AxisName, perm: Sequence[tuple[int, int]]
) -> tuple[tuple[int, int], ...]:
    """Returns (source, target) pairs of indices along an axis.

    Raises `UnboundAxis`, `ArgumentTypeError` for other objects than pairs of whole numbers, and
    `ArgumentError` for an index out of range or named twice.
    """
    size = replica_groups(axis_name).shape[1]
    try:
        pairs = [(index(source), index(target)) for source, target in perm]
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(
            f"{function} takes (source, target) pairs of indices, whole numbers; got "
            f"perm={perm!r:.80} ({error})"
        ) from error
    sources, targets = [s for s, _ in pairs], [t for _, t in pairs]
    if len(set(sources)) < len(pairs) or len(set(targets)) < len(pairs):
        raise ArgumentError(f"{function} sends from and to each index once; got perm={pairs}")
    if any(not 0 <= i < size for i in (*sources, *targets)):
        raise ArgumentError(
            f"{function} over axis {axis_name!r} of size {size} takes indices 0 to {size - 1}; got "
            f"perm={pairs}"
        )
    return tuple(pairs)


@collective
def pshuffle(x: T, axis_name: AxisName, perm: Sequence[int]) -> T:
    """Returns at index i the ``x`` of index ``perm[i]``.

    Raises `UnboundAxis`, and `ArgumentError` unless ``perm`` is a permutation. As
    ``jax.lax.pshuffle``.
    """
    size = axis_size(axis_name)
    if sorted(perm) != list(range(size)):
        raise ArgumentError(
            f"pshuffle takes a permutation of 0 to {size - 1}; got perm={list(perm)}"
        )
    return ppermute(x, axis_name, list(zip(perm, range(size), strict=True)))


@collective
def all_to_all(
    x: T,
    axis_name: AxisName,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Groups = None,
    tiled: bool = False,
) -> T:
    """Returns this device's part of each device's ``x``, which is split along ``split_axis``.

    ``split_axis``, as long as the mapped axis, is removed, and the parts are stacked along a new
    ``concat_axis``; with ``tiled`` chunks of ``split_axis`` are joined along ``concat_axis``. Any
    dtype. Raises `UnboundAxis`, and `ShapeError` for axes out of range or lengths that do not
    divide. As ``jax.lax.all_to_all``.
    """
    size = group_size(axis_name, axis_index_groups)

    def leaf(v: Tracer) -> Tracer:
        split = _axis(split_axis, v.ndim, "split_axis", "all_to_all")
        joined = _axis(concat_axis, v.ndim, "concat_axis", "all_to_all")
        _check_divides("all_to_all", v, split, size, tiled)
        if tiled:
            return _emit_all_to_all(v, axis_name, axis_index_groups, split, joined, size)
        if split != joined:
            # JAX's meaning: concat_axis counts the dimensions without split_axis.
            joined += split < joined
            v = reshape(v, (*v.shape[:joined], 1, *v.shape[joined:]))
            split += split > joined
        exchanged = _emit_all_to_all(v, axis_name, axis_index_groups, split, joined, size)
        if split == joined:
            return exchanged
        return reshape(exchanged, (*exchanged.shape[:split], *exchanged.shape[split + 1 :]))

    return _map_leaves("all_to_all", leaf, x, keeps_weak=False)


@collective
def pswapaxes(x: T, axis_name: AxisName, axis: int, *, axis_index_groups: Groups = None) -> T:
    """Returns ``x`` with the mapped axis and ``axis``, which must be as long, exchanged.

    Raises as `all_to_all`. As ``jax.lax.pswapaxes``.
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def _emit_all_to_all(
    x: Tracer, axis_name: AxisName, groups: Groups, split: int, joined: int, size: int
) -> Tracer:
    trace = active_trace()
    x = as_varying("all_to_all", x, axis_name)
    operation = hlo.AllToAllOp(
        [x.value],
        split_dimension=split,
        concat_dimension=joined,
        split_count=size,
        replica_groups=groups_attribute(axis_name, groups),
        loc=trace.location(),
        **channel_attributes(trace),
    )
    return wrap_collective(trace, operation, x.mat)


@collective
def psum_scatter(
    x: T,
    axis_name: AxisName,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: Groups = None,
    tiled: bool = False,
) -> T:
    """Returns this device's part of ``psum(x)``, split along ``scatter_dimension``.

    That dimension, as long as the mapped axis, is removed; with ``tiled`` its size is divided by
    the axis size. Keeps numeric dtypes; bool becomes int32, as in `psum`. Raises `UnboundAxis`,
    `ShapeError` for a dimension out of range or of another length, and `ArgumentError` for an ``x``
    that is reduced. As ``jax.lax.psum_scatter``, which accepts no booleans.
    """
    size = group_size(axis_name, axis_index_groups)

    def leaf(v: Tracer) -> Tracer:
        v = count_booleans(v)
        if not is_term("psum_scatter", v, axis_name, axis_index_groups):
            v = as_varying("psum_scatter", v, axis_name)
        at = _axis(scatter_dimension, v.ndim, "scatter_dimension", "psum_scatter")
        _check_divides("psum_scatter", v, at, size, tiled)
        trace = active_trace()
        shape = (*v.shape[:at], v.shape[at] // size, *v.shape[at + 1 :])
        operation = hlo.ReduceScatterOp(
            trace.mlir_type(shape, v.dtype),
            v.value,
            scatter_dimension=at,
            replica_groups=groups_attribute(axis_name, axis_index_groups),
            loc=trace.location(),
            **global_ids(trace),
        )
        scalar = trace.mlir_type((), v.dtype)
        region(operation.regions[0], [scalar, scalar], lambda a, b: [emit(hlo.add, a, b)])
        part = wrap_collective(trace, operation, v.mat.moved(names_of(axis_name), "varying"))
        return part if tiled else reshape(part, (*shape[:at], *shape[at + 1 :]))

    return _map_leaves("psum_scatter", leaf, x, sums=True)


def _map_leaves(
    function: str,
    leaf: Callable[[Tracer], Tracer],
    x: T,
    *,
    keeps_weak: bool = True,
    sums: bool = False,
) -> T:
    """Returns a pytree with ``leaf`` applied to each array; weak types are kept if ``keeps_weak``.

    Random keys are accepted unless ``sums``.
    """

    def apply(v: object) -> Tracer:
        found = as_tracer(v, f"argument x of {function}")
        if not sums:
            return with_weakness(by_words("each", leaf, strong(found)), keeps_weak and found.weak)
        return with_weakness(leaf(strong(found)), keeps_weak and found.weak)

    result: T = pytrees.map(apply, x)
    return result


def _axis(axis: int, ndim: int, what: str, function: str) -> int:
    if not -ndim <= axis < ndim:
        raise ShapeError(
            f"{what} of {function} is {axis}, and the array has {ndim} dimensions to choose from"
        )
    return axis % ndim


def _check_divides(function: str, x: Tracer, axis: int, size: int, tiled: bool) -> None:
    length = x.shape[axis]
    if (length % size if tiled else length != size) != 0:
        must = "be a multiple of" if tiled else "equal"
        raise ShapeError(
            f"{function} splits axis {axis} of {TensorType(x.shape, x.dtype)}, whose length "
            f"{length} must {must} the size {size} of the mapped axis"
        )
