"""`gather` with StableHLO's dimension numbers, and `GatherScatterMode`; `index_take`."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from plugrt.array_api.indexing.read import default_fill
from plugrt.errors import ArgumentError, DtypeError, ShapeError
from plugrt.interface import TensorType
from plugrt.lax.dimension_arguments import normalize_dimensions, per_dimension
from plugrt.tracing.emit import (
    broadcast_in_dim,
    compare,
    concatenate,
    constant,
    convert,
    emit,
    full,
    hlo,
    reduce,
    reshape,
    select,
    strong,
)
from plugrt.tracing.emit import select as emit_select
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import dtype_kind
from plugrt.tracing.tracer import Tracer


class GatherDimensionNumbers(NamedTuple):
    """The roles of dimensions in a `gather`; ``jax.lax.GatherDimensionNumbers`` is accepted, too.

    The last dimension of the indices has the start for each dimension in ``start_index_map``.
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class GatherScatterMode(enum.Enum):
    """The treatment of indices out of bounds."""

    CLIP = 0
    """They are clamped."""
    FILL_OR_DROP = 1
    """A gather returns ``fill_value`` there, a scatter ignores the update."""
    PROMISE_IN_BOUNDS = 2
    """The caller promises that there are none out of bounds; otherwise the result is undefined."""


_MODES = {
    None: GatherScatterMode.FILL_OR_DROP,
    "fill": GatherScatterMode.FILL_OR_DROP,
    "drop": GatherScatterMode.FILL_OR_DROP,
    "clip": GatherScatterMode.CLIP,
    "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
}


def parse_mode(function: str, mode: object) -> GatherScatterMode:
    """Returns the mode given as a member, by its name in any case, or as None (drop)."""
    name = getattr(mode, "name", mode)
    name = name.lower() if isinstance(name, str) else name
    if name == "fill_or_drop":
        return GatherScatterMode.FILL_OR_DROP
    if name not in _MODES:
        raise ArgumentError(
            f"mode of lax.{function} is None, 'fill', 'drop', 'clip' or 'promise_in_bounds'; got "
            f"{mode!r}"
        )
    return _MODES[name]


@operation(
    static=(
        "dimension_numbers",
        "slice_sizes",
        "unique_indices",
        "indices_are_sorted",
        "mode",
        "fill_value",
    ),
    weak_by=("operand",),
    keys="each",
)
def gather(
    operand: Tracer,
    start_indices: Tracer,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: GatherScatterMode | str | None = None,
    fill_value: complex | np.generic | None = None,
) -> Tracer:
    """Returns blocks of ``slice_sizes`` of the operand that begin at ``start_indices``.

    ``mode`` decides about blocks that reach beyond the array (see `GatherScatterMode`; None
    promises that there are none). With 'fill' it is ``fill_value``, by default NaN, True, or the
    least (signed) or greatest (unsigned) integer. Any dtype; the indices are integers. Raises
    `DtypeError` for other indices, `ArgumentError` for an unknown mode, and `InvalidOperation`
    for numbers that do not fit the shapes. As ``jax.lax.gather``.
    """
    del unique_indices  # a promise that StableHLO's gather cannot use
    sizes = per_dimension("gather", "slice_sizes", slice_sizes, operand.ndim)
    indices = convert_indices("gather", start_indices)
    how = GatherScatterMode.PROMISE_IN_BOUNDS if mode is None else parse_mode("gather", mode)
    found: Tracer = emit(
        hlo.gather,
        strong(operand),
        indices,
        dimension_numbers=hlo.GatherDimensionNumbers.get(
            list(dimension_numbers.offset_dims),
            list(dimension_numbers.collapsed_slice_dims),
            list(dimension_numbers.operand_batching_dims),
            list(dimension_numbers.start_indices_batching_dims),
            list(dimension_numbers.start_index_map),
            indices.ndim - 1,
        ),
        slice_sizes=sizes,
        indices_are_sorted=indices_are_sorted,
    )
    if how is not GatherScatterMode.FILL_OR_DROP:
        return found
    limits = [operand.shape[d] - sizes[d] for d in dimension_numbers.start_index_map]
    inside = _compare_bounds(indices, limits)
    batch = [i for i in range(found.ndim) if i not in set(dimension_numbers.offset_dims)]
    mask = broadcast_in_dim(inside, found.shape, batch)
    value = default_fill(operand.dtype) if fill_value is None else fill_value
    return emit_select(mask, found, full(found.shape, value, operand.dtype))


def convert_indices(function: str, indices: Tracer) -> Tracer:
    """Returns an array of indices in a dtype wide enough for any dimension."""
    if dtype_kind(indices.dtype) not in "iu" or not indices.ndim:
        raise DtypeError(
            f"the indices of lax.{function} are an integer array whose last dimension holds one "
            f"place; found {TensorType(indices.shape, indices.dtype)}"
        )
    if indices.dtype.kind == "V" or indices.dtype.itemsize < 4:
        return convert(indices, np.int32)
    return strong(indices)


def _compare_bounds(indices: Tracer, limits: Sequence[int]) -> Tracer:
    """Returns whether each position, the last dimension, lies between 0 and the limits."""
    top = np.minimum(np.asarray(limits, np.int64), np.iinfo(indices.dtype).max)
    last = (indices.ndim - 1,)
    most = broadcast_in_dim(constant(top, indices.dtype), indices.shape, last)
    fits = emit(
        hlo.and_,
        compare(indices, full(indices.shape, 0, indices.dtype), "GE"),
        compare(indices, most, "LE"),
    )
    if min(limits, default=0) < 0:
        return full(indices.shape[:-1], False, np.dtype(bool))
    return reduce([fits], [constant(True)], last, lambda a, b: [emit(hlo.and_, a, b)])[0]


def take_rows(x: Tracer, indices: Tracer, axis: int) -> Tracer:
    """Returns the slices of ``x`` at ``indices``, an array of any shape, within the bounds."""
    numbers = GatherDimensionNumbers(
        offset_dims=tuple(
            i if i < axis else i + indices.ndim - 1 for i in range(x.ndim) if i != axis
        ),
        collapsed_slice_dims=(axis,),
        start_index_map=(axis,),
    )
    sizes = [1 if i == axis else n for i, n in enumerate(x.shape)]
    wide = broadcast_in_dim(indices, (*indices.shape, 1), range(indices.ndim))
    found: Tracer = gather(x, wide, numbers, sizes, mode="promise_in_bounds")
    return found


@operation(static=("axes",), keys="each", keyed=("src",))
def index_take(src: Tracer, idxs: Sequence[Tracer], axes: Sequence[int]) -> Tracer:
    """Returns the slices of ``src`` at positions along ``axes``, stacked.

    ``idxs`` has for each of the axes a vector of n integers, which wrap around at both ends; the
    result has shape (n, …) with the other dimensions. Any dtype. Raises `DtypeError` for indices
    that are no integers, `ShapeError` for indices that are no vectors of one length and for an axis
    without elements, `ArgumentError` for another number of vectors, and `AxisError`. As
    ``jax.lax.index_take``, which accepts only ascending axes.

    >>> lax.index_take(xp.asarray([[1, 2], [3, 4]]), [xp.asarray([1, -2])], (0,))
    Array([[3, 4],
           [1, 2]], dtype=int32)
    """
    along = normalize_dimensions("index_take", axes, src.ndim)
    found = [*idxs]
    if len(found) != len(along) or not along:
        raise ArgumentError(
            f"lax.index_take takes indices for each of its axes, one or more; got {len(found)} of "
            f"them for the axes {along}"
        )
    for i, index in enumerate(found):
        if dtype_kind(index.dtype) not in "iu":
            raise DtypeError(f"idxs[{i}] of lax.index_take are integers; got {index.dtype.name}")
        if index.ndim != 1 or index.shape != found[0].shape:
            raise ShapeError(
                "idxs of lax.index_take are vectors of one length; got "
                f"{[TensorType(x.shape, x.dtype) for x in found]}"
            )
    if any(not src.shape[d] for d in along):
        raise ShapeError(
            f"lax.index_take got src of shape {src.shape}, which has no elements along one of the "
            f"axes {along}"
        )
    columns = [
        reshape(_wrap(index, src.shape[d]), (*index.shape, 1))
        for index, d in zip(found, along, strict=True)
    ]
    numbers = GatherDimensionNumbers(
        tuple(range(1, src.ndim - len(along) + 1)), tuple(sorted(along)), along
    )
    sizes = [1 if d in along else n for d, n in enumerate(src.shape)]
    result: Tracer = gather(src, concatenate(columns, 1), numbers, sizes)
    return result


def _wrap(index: Tracer, size: int) -> Tracer:
    """Wraps indices into the range from 0 up to ``size``, as Python's remainder does."""
    wide = index.dtype if index.dtype.kind != "V" and index.dtype.itemsize == 8 else np.int32
    index = convert(index, np.int64 if index.dtype == np.uint32 else wide)
    sizes, zero = full(index.shape, size, index.dtype), full(index.shape, 0, index.dtype)
    rest = emit(hlo.remainder, index, sizes)
    return select(compare(rest, zero, "LT"), emit(hlo.add, rest, sizes), rest)
