"""Searching functions: `where`, `argmax`, `argmin`, `nonzero`, `searchsorted` and others."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from plugrt.array_api.elementwise.operands import (
    ANY,
    INTEGER,
    REAL_OR_BOOLEAN,
    admit,
    common_dtype,
    common_shape,
    require_array,
    unary,
)
from plugrt.array_api.fold import binary_combiner, fold, highest, lowest
from plugrt.array_api.indexing.positions import normalize_positions
from plugrt.array_api.indexing.read import gather
from plugrt.array_api.sets import put_like, require_concrete
from plugrt.array_api.sorting import sorts_before
from plugrt.array_api.statistics import require_elements
from plugrt.errors import ArgumentError, ShapeError
from plugrt.execution.arrays.array import Array
from plugrt.execution.transfers.host_values import as_array
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.tracing.argument_checks import normalize_axes, normalize_axis, reduced_shape
from plugrt.tracing.emit import (
    active_trace,
    broadcast_to,
    compare,
    constant,
    convert,
    emit,
    full,
    hlo,
    iota,
    reduce,
    region,
    reshape,
    select,
    wrap,
)
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import default_int, dtype_kind
from plugrt.tracing.tracer import Tracer
from plugrt.typing import ArrayLike, Axes


@operation(weak_by=("x1", "x2"), keys="each")
def where(condition: Tracer, x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns ``x1`` where ``condition`` is true, else ``x2``; the three broadcast.

    Nonzero values of ``condition`` are true. The result has the common dtype of ``x1`` and ``x2``;
    Python scalars do not widen it. Any dtypes. Raises `ShapeError` if the shapes do not broadcast,
    `DtypeError` without a promotion.

    >>> xp.where(xp.asarray([True, False]), xp.asarray([1, 2]), 0)
    Array([1, 0], dtype=int32)
    """
    names = ("condition", "x1", "x2")
    condition = is_nonzero(condition)
    dtype = common_dtype("where", (x1, x2), ANY, names[1:])
    shape = common_shape("where", (condition, x1, x2), names)
    chosen = [broadcast_to(convert(x, dtype), shape) for x in (x1, x2)]
    return select(broadcast_to(condition, shape), *chosen)


@operation(static=("axis", "keepdims"), weak_by="none")
def argmax(x: Tracer, /, axis: int | None = None, *, keepdims: bool = False) -> Tracer:
    """Returns the first index of the greatest element along ``axis``; NaN counts as the greatest.

    Without an axis, the position in the flattened array. Real dtypes and bool. Raises `ShapeError`
    where there are no elements to choose from. The result has the default integer dtype and lacks
    the axis unless ``keepdims``. Raises `DtypeError` for complex numbers, `AxisError`.

    >>> xp.argmax(xp.asarray([[1, 5], [7, 4]]), axis=1)
    Array([1, 0], dtype=int32)
    """
    return _first_extreme("argmax", "GT", lowest, x, axis, keepdims)


@operation(static=("axis", "keepdims"), weak_by="none")
def argmin(x: Tracer, /, axis: int | None = None, *, keepdims: bool = False) -> Tracer:
    """Returns the first index of the least element along ``axis``; NaN counts as the least.

    Without an axis, the position in the flattened array. Real dtypes and bool. Raises `ShapeError`
    where there are no elements to choose from. The result has the default integer dtype and lacks
    the axis unless ``keepdims``. Raises `DtypeError` for complex numbers, `AxisError`.
    """
    return _first_extreme("argmin", "LT", highest, x, axis, keepdims)


def _first_extreme(
    function: str, direction: str, identity: Any, x: Tracer, axis: int | None, keepdims: bool
) -> Tracer:
    x = unary(function, x, REAL_OR_BOOLEAN)
    whole = x.shape
    if axis is None:
        axes = tuple(range(x.ndim))
        require_elements(function, x, axes)
        x, along = reshape(x, (x.size,)), 0
    else:
        along = normalize_axis(function, axis, x.ndim)
        axes = (along,)
        require_elements(function, x, axes)
    index = default_int()
    # Greater than every position, so that elements equal to the identity win ties against it.
    start = constant(np.iinfo(index).max, index)
    _, found = reduce(
        [x, iota(x.shape, along, index)],
        [constant(identity(x.dtype)), start],
        [along],
        lambda a, i, b, j: _pick_better(direction, a, i, b, j),
    )
    return reshape(found, reduced_shape(whole, axes, keepdims=keepdims))


def _pick_better(direction: str, a: Tracer, i: Tracer, b: Tracer, j: Tracer) -> list[Tracer]:
    """Returns the better value and its position: NaN first, then by value, then by position."""
    wins, ties = compare(a, b, direction), compare(a, b, "EQ")
    if dtype_kind(a.dtype) == "f":
        a_nan, b_nan = compare(a, a, "NE"), compare(b, b, "NE")
        wins = emit(hlo.or_, wins, emit(hlo.and_, a_nan, emit(hlo.not_, b_nan)))
        ties = emit(hlo.or_, ties, emit(hlo.and_, a_nan, b_nan))
    earlier = emit(hlo.and_, ties, compare(i, j, "LT"))
    return [select(wins, a, b), select(emit(hlo.or_, wins, earlier), i, j)]


@operation(static=("axis", "keepdims"), weak_by="none")
def count_nonzero(x: Tracer, /, axis: Axes = None, keepdims: bool = False) -> Tracer:
    """Returns the number of nonzero elements over ``axis``, in the default integer dtype.

    Any dtype. Raises `AxisError`.

    >>> xp.count_nonzero(xp.asarray([0, 5, 0, 7]))
    Array(2, dtype=int32)
    """
    axes = normalize_axes("count_nonzero", axis, x.ndim)
    return fold(
        binary_combiner(hlo.add), convert(is_nonzero(x), default_int()), 0, axes, keepdims=keepdims
    )


def is_nonzero(x: Tracer) -> Tracer:
    """Returns booleans: whether elements differ from zero (NaN does)."""
    if x.dtype == np.bool_:
        return x
    return compare(x, full(x.shape, 0, x.dtype), "NE")


_mask = operation(is_nonzero)


@with_argument_errors
def nonzero(x: ArrayLike, /) -> tuple[Array, ...]:
    """Returns the positions of the elements that are not zero: an integer array for each axis.

    Their number depends on the data: the function waits for ``x``, and raises `DataDependentShape`
    for traced arrays. Any dtype; the result has default integers in row-major order. Raises
    `ShapeError` for a 0-d array.

    >>> xp.nonzero(xp.asarray([0, 5, 0, 7]))
    (Array([1, 3], dtype=int32),)
    """
    known: Any = x if isinstance(x, Array) else as_array(x, "argument 'x' of nonzero")
    if not known.ndim:  # also while traced
        raise ShapeError("nonzero got a 0-d array; it takes one dimension or more")
    array = require_concrete("nonzero", known, "array_api.where(x != 0, a, b) keeps the shape")
    found = np.nonzero(np.asarray(_mask(array)))
    return tuple(put_like(array, positions.astype(default_int())) for positions in found)


@operation(static=("side",), weak_by="none")
def searchsorted(
    x1: Tracer,
    x2: Tracer,
    /,
    side: Literal["left", "right"] = "left",
    sorter: Tracer | None = None,
) -> Tracer:
    """Returns the positions at which to insert the elements of ``x2`` into the sorted ``x1``.

    ``side`` selects the position before (``left``) or after (``right``) equal elements. ``sorter``
    is the result of `argsort` for an ``x1`` that is not sorted. NaNs go last. Positions have the
    default integer dtype. A binary search, also when traced. Any dtypes with a promotion; the
    result has the shape of ``x2``. Raises `ShapeError` for an ``x1`` of other than one dimension,
    `ArgumentError` for another ``side``.

    >>> xp.searchsorted(xp.asarray([1, 2, 2, 3]), xp.asarray([2, 9]))
    Array([1, 4], dtype=int32)
    """
    if side not in ("left", "right"):
        raise ArgumentError(f"side of searchsorted is {side!r}; it takes 'left' or 'right'")
    if x1.ndim != 1:
        raise ShapeError(f"searchsorted got x1 of shape {x1.shape}; it takes one dimension")
    dtype = common_dtype("searchsorted", (x1, x2), ANY, ("x1", "x2"))
    x1, x2 = convert(x1, dtype), convert(x2, dtype)
    size = x1.shape[0]
    if sorter is not None:
        admit(
            "searchsorted", "sorter", require_array("searchsorted", "sorter", sorter).dtype, INTEGER
        )
        if sorter.shape != x1.shape:
            raise ShapeError(
                f"searchsorted got x1 of shape {x1.shape} and sorter of shape {sorter.shape}; "
                "they must be equal"
            )
        if size:
            x1 = gather(x1, [(0, normalize_positions(sorter, size))], sorter.shape, 0)
    if not size or not x2.size:
        return full(x2.shape, 0, default_int())
    return bisect(x1, x2, left=side == "left")


def bisect(ordered: Tracer, wanted: Tracer, *, left: bool) -> Tracer:
    """Returns the position of each wanted element in a sorted array of one dimension, not empty.

    A binary search for all elements at once, with as many steps as the array's size needs.
    """
    trace = active_trace()
    shape, index, steps = wanted.shape, default_int(), ordered.shape[0].bit_length()
    low = full(shape, 0, index)
    high = full(shape, ordered.shape[0], index)
    carried = [constant(0, index), low, high]
    loop = hlo.WhileOp(
        [c.value.type for c in carried], [c.value for c in carried], loc=trace.location()
    )

    def step(i: Tracer, low: Tracer, high: Tracer) -> list[Tracer]:
        # low + (high - low) / 2: the plain mean could overflow
        half = emit(hlo.divide, emit(hlo.subtract, high, low), full(shape, 2, index))
        middle = emit(hlo.add, low, half)
        found = gather(ordered, [(0, middle)], shape, 0)
        goes_right = (
            sorts_before(found, wanted) if left else emit(hlo.not_, sorts_before(wanted, found))
        )
        # Empty ranges stay empty.
        goes_right = emit(hlo.and_, goes_right, compare(low, high, "LT"))
        beyond = emit(hlo.add, middle, full(shape, 1, index))
        return [
            emit(hlo.add, i, constant(1, index)),
            select(goes_right, beyond, low),
            select(goes_right, high, emit(hlo.minimum, middle, high)),
        ]

    types = [c.value.type for c in carried]
    region(loop.regions[0], types, lambda i, *_: [compare(i, constant(steps, index), "LT")])
    region(loop.regions[1], types, step)
    return wrap(loop)[1]


__all__ = [
    "argmax", "argmin", "bisect", "count_nonzero", "is_nonzero", "nonzero", "searchsorted", "where",
]  # fmt: skip
