"""``x[key]``, `take` and `take_along_axis`, which read elements by position."""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrt.array_api.elementwise.operands import INTEGER, admit, broadcast_shapes
from plugrt.array_api.indexing.items import Scalar, Shape, Slice, Spec
from plugrt.array_api.indexing.key import Key, normalize_index, parse
from plugrt.array_api.indexing.positions import in_bounds, normalize_positions
from plugrt.array_api.indexing.read import fill_invalid, gather, is_filled_out_of_bounds, read
from plugrt.errors import AxisError, InvalidIndex, ShapeError
from plugrt.execution.arrays.array import Array
from plugrt.execution.transfers.host_values import scalar_operand
from plugrt.frames.traceback_filter import filter_traceback
from plugrt.tracing.argument_checks import normalize_axis
from plugrt.tracing.emit import broadcast_to, emit, full, hlo, reshape
from plugrt.tracing.operation import operation
from plugrt.tracing.trace import current_trace
from plugrt.tracing.tracer import Tracer


def getitem(x: Any, key: Any, /) -> Any:
    """Returns ``x[key]`` by NumPy's rules.

    A key is an integer, a slice, an ellipsis, None, an integer array, a boolean array or a tuple
    of these. Integers out of bounds raise `InvalidIndex`, an `IndexError`. Positions in arrays are
    clamped to the axis, as in JAX, since a launched program cannot raise; ``x.at[key].get(...)``
    offers other modes. A boolean array picks as many elements as it holds, so it must not be
    traced (`DataDependentShape`). Integers are operands of the program: a loop over ``x[i]``
    compiles once, and so does one over ``x[i : i + 5]``, with any step, and beside arrays.
    """
    try:
        traced = current_trace() is not None
        if type(x) is Array and not traced and type(key) is int and x.ndim:
            return read_row(x, scalar_operand(normalize_index(key, x.shape, 0), x))
        parsed = parse(x.shape, key, embed=traced)
        return read_at(x, parsed.operands, spec=parsed.spec)
    except Exception as error:  # raised again without plugrt's frames
        filter_traceback(error)
        raise


@operation(weak_by=("x",), title="getitem", keys="each")
def read_row(x: Tracer, index: Tracer) -> Tracer:
    """Returns ``x[index]`` for a single position within bounds."""
    rest = [Slice(0, n, 1) for n in x.shape[1:]]
    return read(x, Key((Scalar(safe=True), *rest), (index,)))


@operation(static=("spec",), weak_by=("x",), title="getitem", keys="each")
def read_at(x: Tracer, index: tuple[Tracer, ...], *, spec: Spec) -> Tracer:
    """Returns the elements that a key selects."""
    return read(x, Key(spec, index))


@operation(static=("axis", "mode", "fill_value"), weak_by=("x",), shards=True, keys="each")
def take(
    x: Tracer,
    indices: Tracer,
    /,
    axis: int | None = None,
    *,
    mode: str | None = None,
    fill_value: complex | np.generic | None = None,
) -> Tracer:
    """Returns the slices of ``x`` at ``indices`` along ``axis``.

    ``axis`` may be left out for one dimension. Negative indices count from the back. ``mode``
    treats indices out of bounds: ``fill`` (the default, as ``jnp.take``) gives ``fill_value``, by
    default NaN or an extreme integer; ``clip`` the nearest; ``wrap`` wraps around. ``x`` has any
    dtype, ``indices`` integers of any shape. Raises `DtypeError` for other indices, `AxisError`,
    and `InvalidIndex` for an empty axis.

    >>> xp.take(xp.asarray([10, 20, 30]), xp.asarray([2, 0, -1]))
    Array([30, 10, 30], dtype=int32)
    """
    admit("take", "indices", indices.dtype, INTEGER)
    if axis is None and x.ndim != 1:
        raise AxisError(
            f"take got x of shape {x.shape} and no axis; axis may be left out for arrays of one "
            "dimension only"
        )
    along = normalize_axis("take", 0 if axis is None else axis, x.ndim)
    shape = (*x.shape[:along], *indices.shape, *x.shape[along + 1 :])
    if _is_empty("take", x.shape, along, shape):
        # As in JAX the result is on the devices of x, unless no elements of a non-empty x are
        # taken.
        unused = 0 in indices.shape and x.shape[along]
        return full(shape, 0, x.dtype) if unused else reshape(x, shape)
    positions = [(along, normalize_positions(indices, x.shape[along], mode))]
    result = gather(x, positions, indices.shape, along)
    if is_filled_out_of_bounds(mode or "fill", fill_value):
        where = range(along, along + indices.ndim)
        result = fill_invalid(result, in_bounds(x.shape, positions), where, fill_value)
    return result


@operation(static=("axis", "mode", "fill_value"), weak_by=("x",), keys="each")
def take_along_axis(
    x: Tracer,
    indices: Tracer,
    /,
    axis: int = -1,
    mode: str | None = None,
    fill_value: complex | np.generic | None = None,
) -> Tracer:
    """Returns for each row along ``axis`` its elements at the corresponding row of ``indices``.

    The other dimensions of the two broadcast. Indices out of bounds as in `take`. Applies the
    indices that `argsort`, `argmax` and `argmin` return. Raises `DtypeError` for indices that are
    no integers, `AxisError`, `ShapeError` if shapes do not broadcast.

    >>> x = xp.asarray([[3, 1], [2, 4]])
    >>> xp.take_along_axis(x, xp.argsort(x, axis=1), axis=1)
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    admit("take_along_axis", "indices", indices.dtype, INTEGER)
    along = normalize_axis("take_along_axis", axis, x.ndim)
    rest = [tuple(n for i, n in enumerate(s) if i != along) for s in (x.shape, indices.shape)]
    common = broadcast_shapes((rest[0], rest[1])) if x.ndim == indices.ndim else None
    if common is None:
        raise ShapeError(
            f"take_along_axis along axis {along} got x of shape {x.shape} and indices of shape "
            f"{indices.shape}; they must broadcast but for that axis"
        )
    size, count = x.shape[along], indices.shape[along]
    shape = (*common[:along], count, *common[along:])
    if _is_empty("take_along_axis", x.shape, along, shape):
        return full(shape, 0, x.dtype)
    x = broadcast_to(x, (*common[:along], size, *common[along:]))
    p = broadcast_to(normalize_positions(indices, size, mode), shape)
    batch = [i for i in range(x.ndim) if i != along]
    result: Tracer = emit(
        hlo.gather,
        x,
        reshape(p, (*shape, 1)),
        dimension_numbers=hlo.GatherDimensionNumbers.get(
            [], [along], batch, batch, [along], x.ndim
        ),
        slice_sizes=[1] * x.ndim,
    )
    if is_filled_out_of_bounds(mode or "fill", fill_value):
        result = fill_invalid(result, in_bounds(x.shape, [(along, p)]), range(x.ndim), fill_value)
    return result


def _is_empty(function: str, shape: Shape, axis: int, result: Shape) -> bool:
    """Whether the result is empty; raises `InvalidIndex` for elements of an empty axis."""
    if 0 in result:
        return True
    if shape[axis] == 0:
        raise InvalidIndex(
            f"{function} got x of shape {shape}, which has no elements along axis {axis}"
        )
    return False


__all__ = ["getitem", "take", "take_along_axis"]
