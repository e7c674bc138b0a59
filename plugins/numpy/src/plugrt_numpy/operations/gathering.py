"""``gather`` and ``scatter``, by NumPy's indexing with arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plugrt.stablehlo.bindings import hlo
from plugrt_numpy.bodies import single_operation
from plugrt_numpy.data_types import INT64, Array, Function
from plugrt_numpy.operation import Lowering, Operation
from plugrt_numpy.operations.control_flow import unpack_single
from plugrt_numpy.operations.folding import combiner, known_ufunc
from plugrt_numpy.operations.scattering import at_places, distinct_passes


def split_starts(
    indices: Array, vector_dim: int, index_map: Sequence[int]
) -> tuple[dict[int, Array], tuple[int, ...]]:
    """Returns for each indexed dimension the starts of the slices, and the batch's shape."""
    indices = np.asarray(indices)
    if indices.dtype == np.uint64:
        indices = np.minimum(indices, np.uint64(np.iinfo(INT64).max))
    indices = indices.astype(INT64)
    if vector_dim == indices.ndim:
        return {index_map[0]: indices}, indices.shape
    moved = np.moveaxis(indices, vector_dim, 0)
    return {d: moved[i] for i, d in enumerate(index_map)}, moved.shape[1:]


def batch_index(batch: Sequence[int], batching_dims: Sequence[int], vector_dim: int) -> list[Array]:
    """Returns for each batching dimension of the indices its positions 0, 1, …, as an array.

    The array has the rank of ``batch``, so that it broadcasts against the other indices.
    """
    found = []
    for dim in batching_dims:
        axis = dim if dim < vector_dim else dim - 1
        shape = [1] * len(batch)
        shape[axis] = batch[axis]
        found.append(np.arange(batch[axis]).reshape(shape))
    return found


def window_index(start: Array, size: int, axis: int, windows: int) -> Array:
    """Returns the positions of slices: the batch's, then ``windows`` axes, ``axis`` long."""
    offsets = np.arange(size).reshape([-1 if d == axis else 1 for d in range(windows)])
    return np.asarray(start).reshape(np.shape(start) + (1,) * windows) + offsets


def _gather(op: Operation) -> Function:
    return _gather_of(_gather_numbers(op), op.operand_types[0].shape, op.ints("slice_sizes"))


@dataclass(frozen=True)
class _GatherNumbers:
    """The dimension numbers of a gather."""

    offset_dims: list[int]
    collapsed: list[int]
    batching: list[int]
    index_batching: list[int]
    index_map: list[int]
    vector_dim: int


def _gather_numbers(op: Operation) -> _GatherNumbers:
    numbers = hlo.GatherDimensionNumbers(op.attribute("dimension_numbers"))
    return _GatherNumbers(
        list(numbers.offset_dims),
        list(numbers.collapsed_slice_dims),
        list(numbers.operand_batching_dims),
        list(numbers.start_indices_batching_dims),
        list(numbers.start_index_map),
        numbers.index_vector_dim,
    )


def _dynamic_gather(op: Operation) -> Function:
    numbers, shape = _gather_numbers(op), op.operand_types[0].shape
    return lambda x, indices, sizes: _gather_of(numbers, shape, sizes.tolist())(x, indices)


def _gather_of(numbers: _GatherNumbers, shape: Sequence[int], sizes: Sequence[int]) -> Function:
    collapsed, batching, index_batching = (
        numbers.collapsed,
        numbers.batching,
        numbers.index_batching,
    )
    index_map, vector_dim, offset_dims = numbers.index_map, numbers.vector_dim, numbers.offset_dims
    rank = len(shape)
    # Dimensions that are read whole stay; the others come first and are indexed.
    indexed = [d for d in range(rank) if d in index_map or d in batching or sizes[d] != shape[d]]
    whole = [d for d in range(rank) if d not in indexed]
    gone = [d for d in indexed if d in collapsed or d in batching]
    windowed = [d for d in indexed if d not in gone]
    window_axes = {d: i for i, d in enumerate(windowed)}
    kept = [d for d in range(rank) if d not in collapsed and d not in batching]
    order = [*indexed, *whole]

    def run(x: Array, indices: Array) -> Array:
        starts, batch = split_starts(indices, vector_dim, index_map)
        starts.update(zip(batching, batch_index(batch, index_batching, vector_dim), strict=True))
        places = []
        for d in indexed:
            start = starts.get(d, _ZERO)
            if d not in batching:
                start = np.clip(start, 0, shape[d] - sizes[d])
            if d in window_axes:
                places.append(window_index(start, sizes[d], window_axes[d], len(windowed)))
            else:
                places.append(start.reshape(start.shape + (1,) * len(windowed)))
        moved = np.asarray(x).transpose(order)
        if places:
            # Without starts along any axis, the batch is not in the shape of the positions.
            places[0] = np.broadcast_to(
                places[0], np.broadcast_shapes(places[0].shape, (*batch, *[1] * len(windowed)))
            )
            found = moved[tuple(places)]
        else:
            found = np.broadcast_to(moved, (*batch, *moved.shape))
        # Now: batch, windowed dimensions, whole dimensions. The result has them in operand order.
        count = len(batch)
        position = {
            d: count + i for i, d in enumerate([*windowed, *(w for w in whole if w in kept)])
        }
        squeezed = found.reshape(
            found.shape[: count + len(windowed)] + tuple(shape[d] for d in whole if d in kept)
        )
        axes = iter(range(count))
        offsets = dict(zip(offset_dims, kept, strict=True))
        final = [
            position[offsets[d]] if d in offsets else next(axes) for d in range(count + len(kept))
        ]
        return squeezed.transpose(final)

    return run


_ZERO = np.zeros((), INT64)


def _scatter(op: Operation) -> Function:
    numbers = hlo.ScatterDimensionNumbers(op.attribute("scatter_dimension_numbers"))
    inserted = list(numbers.inserted_window_dims)
    batching = list(numbers.input_batching_dims)
    index_batching = list(numbers.scatter_indices_batching_dims)
    index_map = list(numbers.scattered_dims_to_operand_dims)
    vector_dim, window_dims = numbers.index_vector_dim, list(numbers.update_window_dims)
    count = len(op.ir.results)
    shape = op.operand_types[0].shape
    update_shape = op.operand_types[count + 1].shape
    batch_dims = [d for d in range(len(update_shape)) if d not in window_dims]
    kept = [d for d in range(len(shape)) if d not in inserted and d not in batching]
    sizes = dict.fromkeys(range(len(shape)), 1)
    sizes.update({d: update_shape[w] for d, w in zip(kept, window_dims, strict=True)})
    window_axes = {d: i for i, d in enumerate(kept)}
    strides = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
    write = _writer(op, count)

    def run(*values: Any) -> list[Array]:
        inputs, indices, updates = values[:count], values[count], values[count + 1 : 2 * count + 1]
        starts, batch = split_starts(indices, vector_dim, index_map)
        starts.update(zip(batching, batch_index(batch, index_batching, vector_dim), strict=True))
        # The flat position of each update; a window that does not fit is omitted as a whole.
        flat: Any = np.zeros((*batch, *[1] * len(kept)), INT64)
        inside: Any = np.ones(batch, np.bool_)
        for d in range(len(shape)):
            start = starts.get(d, _ZERO)
            inside = inside & (start >= 0) & (start <= shape[d] - sizes[d])
            places = window_index(start, sizes[d], window_axes.get(d, -1), len(kept))
            flat = flat + places * strides[d]
        valid = inside.reshape((*batch, *[1] * len(kept)))
        wanted = (*batch, *(sizes[d] for d in kept))
        flat = np.broadcast_to(flat, wanted)
        moved = [np.asarray(u).transpose([*batch_dims, *window_dims]) for u in updates]
        if inside.all():
            places, news = flat.reshape(-1), [np.reshape(u, -1) for u in moved]
        else:
            chosen = np.broadcast_to(valid, wanted)
            places, news = flat[chosen], [u[chosen] for u in moved]
        outs = [np.array(x).reshape(-1) for x in inputs]
        write(outs, places, news, values[2 * count + 1 :])
        return [out.reshape(shape) for out in outs]

    return unpack_single(op, run)


def _writer(op: Operation, count: int) -> Any:
    """Returns a function that combines updates into flat arrays at positions."""
    unique = op.flag("unique_indices")
    if count == 1:
        body = op.body()
        if single_operation(body.block) == "second":
            return _assign
        ufunc = known_ufunc(body)
        if ufunc is not None and not unique:
            return lambda outs, places, news, _: at_places(ufunc, outs[0], places, news[0])
    combine, captures = combiner(op, count)

    def write(outs: list[Array], places: Array, news: list[Array], captured: Any) -> None:
        given = [captured[i] for i in captures]
        for chosen in [slice(None)] if unique else distinct_passes(places):
            where = places[chosen]
            old = [out[where] for out in outs]
            results = combine(*old, *(new[chosen] for new in news), *given)
            for out, result in zip(outs, results, strict=True):
                out[where] = result

    return write


def _assign(outs: list[Array], places: Array, news: list[Array], captured: Any) -> None:
    outs[0][places] = news[0]


OPERATIONS: dict[str, Lowering] = {
    "stablehlo.dynamic_gather": _dynamic_gather,
    "stablehlo.gather": _gather,
    "stablehlo.scatter": _scatter,
}
"""Operation name to lowering."""
