"""`reduce`, `reduce_sum`…, cumulative reductions, `argmax` and `argmin`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from plugrt.array_api.dtypes import as_dtype
from plugrt.array_api.elementwise.exponential import logaddexp
from plugrt.array_api.fold import Combine, accumulate, binary_combiner, fold, highest, lowest
from plugrt.array_api.sorting import larger, smaller
from plugrt.errors import ArgumentError, DtypeError, ShapeError, StructureError
from plugrt.execution.trees import pytrees
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import TensorType
from plugrt.lax.control_flow.eager import launch
from plugrt.lax.control_flow.loop_carry import describe
from plugrt.lax.control_flow.regions import closed_region
from plugrt.lax.dimension_arguments import normalize_dimension, normalize_dimensions
from plugrt.lax.operand_checks import check_dtype_kind
from plugrt.tracing.argument_checks import kind_words
from plugrt.tracing.captures import as_tracer
from plugrt.tracing.emit import (
    compare,
    constant,
    convert,
    emit,
    hlo,
    iota,
    reduce_op,
    strong,
    with_weakness,
    wrap,
)
from plugrt.tracing.emit import reduce as emit_reduce
from plugrt.tracing.emit import select as emit_select
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import dtype_kind
from plugrt.tracing.traceable import name_operation
from plugrt.tracing.tracer import Tracer
from plugrt.typing import DTypeLike

Reduction: TypeAlias = Callable[[Any, Sequence[int]], Any]
Running: TypeAlias = Callable[..., Any]


@with_argument_errors
def reduce(
    operands: object,
    init_values: object,
    computation: Callable[[Any, Any], object],
    dimensions: Sequence[int],
) -> Any:
    """Returns arrays of one shape reduced together over ``dimensions``.

    ``operands`` and ``init_values`` (scalars of the same dtypes) are pytrees of one structure;
    ``computation`` maps two such trees of scalars to one. It must be associative and may capture no
    arrays. Any dtypes; results lack the dimensions. Raises `StructureError`, `ShapeError` or
    `DtypeError` if operands, initial values and results do not match, and `TracingError` for
    captured arrays. As ``jax.lax.reduce``.

    >>> lax.reduce(xp.asarray([1, 2, 3]), xp.asarray(0), lambda a, b: a + b, (0,))
    Array(6, dtype=int32)
    """

    def run(operands: object, init_values: object) -> Any:
        arrays, spec = pytrees.flatten(operands)
        initial, found = pytrees.flatten(init_values)
        if spec != found:
            raise StructureError(
                "operands and init_values of lax.reduce must have one structure; found "
                f"{describe(spec)} and {describe(found)}"
            )
        combine = flatten_computation("reduce", computation, spec)
        return pytrees.unflatten(spec, _emit_reduce(arrays, initial, combine, tuple(dimensions)))

    operands_given = {"operands": operands, "init_values": init_values}
    return launch("reduce", (computation,), tuple(dimensions), operands_given, run, reads_once=True)


def flatten_computation(
    title: str, computation: Callable[[Any, Any], object], spec: pytrees.PyTreeSpec
) -> Callable[..., list[Tracer]]:
    """Returns a computation on two trees as one on flat scalars."""

    def combine(*scalars: Tracer) -> list[Tracer]:
        half = len(scalars) // 2
        trees = [pytrees.unflatten(spec, part) for part in (scalars[:half], scalars[half:])]
        leaves, found = pytrees.flatten(computation(*trees))
        if found != spec:
            raise StructureError(
                f"the computation of lax.{title} must return the structure of its operands: "
                f"expected {describe(spec)}, found {describe(found)}"
            )
        outputs = [as_tracer(x, f"the result of the computation of lax.{title}") for x in leaves]
        for i, (x, y) in enumerate(zip(outputs, scalars, strict=False)):
            if (x.shape, x.dtype) != ((), y.dtype) and not (x.weak and not x.shape):
                raise DtypeError(
                    f"output {i} of the computation of lax.{title} must be "
                    f"{TensorType((), y.dtype)}; found {TensorType(x.shape, x.dtype)}"
                )
        return [convert(x, y.dtype) for x, y in zip(outputs, scalars, strict=False)]

    return combine


def check_initial(title: str, arrays: Sequence[Tracer], initial: Sequence[Tracer]) -> list[Tracer]:
    """Returns the initial values in their arrays' dtypes; arrays have one shape."""
    shape = arrays[0].shape if arrays else ()
    if not arrays or any(x.shape != shape for x in arrays):
        shapes = ", ".join(str(x.shape) for x in arrays) or "none"
        raise ShapeError(f"lax.{title} takes arrays of one shape; found {shapes}")
    for x, start in zip(arrays, initial, strict=True):
        if start.shape or not (start.weak or start.dtype == x.dtype):
            raise DtypeError(
                f"the initial value of lax.{title} for {TensorType(x.shape, x.dtype)} must be "
                f"{TensorType((), x.dtype)}; found {TensorType(start.shape, start.dtype)}"
            )
    return [convert(start, x.dtype) for x, start in zip(arrays, initial, strict=True)]


def _emit_reduce(
    arrays: Sequence[Tracer],
    initial: Sequence[Tracer],
    combine: Callable[..., list[Tracer]],
    dimensions: tuple[int, ...],
) -> list[Tracer]:
    starts = check_initial("reduce", arrays, initial)
    axes = normalize_dimensions("reduce", dimensions, arrays[0].ndim)
    op = reduce_op(arrays, starts, axes)
    closed_region("reduce", op, [x.dtype for x in (*arrays, *arrays)], combine)
    weak = [x.weak and first.weak for x, first in zip(arrays, initial, strict=True)]
    return [with_weakness(y, is_weak) for y, is_weak in zip(wrap(op), weak, strict=True)]


def _make_reduction(
    name: str,
    combine: Combine,
    kinds: str,
    initial: Callable[[Any], object],
    says: str,
    shards: bool = False,
) -> Reduction:
    def body(operand: Tracer, axes: Sequence[int]) -> Tracer:
        check_dtype_kind(name, "operand", operand.dtype, kinds)
        along = normalize_dimensions(name, axes, operand.ndim)
        return strong(fold(combine, operand, initial(operand.dtype), along, keepdims=False))

    name_operation(
        body,
        __name__,
        name,
        f"Returns {says} over the dimensions ``axes``, which the result lacks.",
        f"The dtype is one of these: {kind_words(kinds)} (else `DtypeError`), and stays. Raises "
        "`AxisError` for a dimension out of range.",
    )
    # As in JAX: sums of weak integers are weak, bitwise reductions are not.
    weak_by: Any = "none" if kinds == "biu" else "all"
    made: Reduction = operation(static=("axes",), weak_by=weak_by, shards=shards)(body)
    return made


reduce_sum = _make_reduction(
    "reduce_sum", binary_combiner(hlo.add), "iufc", lambda _: 0, "the sum", shards=True
)
reduce_prod = _make_reduction(
    "reduce_prod", binary_combiner(hlo.multiply), "iufc", lambda _: 1, "the product"
)
reduce_max = _make_reduction("reduce_max", larger, "biufc", lowest, "the largest element")
reduce_min = _make_reduction("reduce_min", smaller, "biufc", highest, "the smallest element")
reduce_and = _make_reduction(
    "reduce_and", binary_combiner(hlo.and_), "biu", lambda d: ~np.zeros((), d), "the bitwise and"
)
reduce_or = _make_reduction(
    "reduce_or", binary_combiner(hlo.or_), "biu", lambda _: 0, "the bitwise or"
)
reduce_xor = _make_reduction(
    "reduce_xor", binary_combiner(hlo.xor), "biu", lambda _: 0, "the bitwise exclusive or"
)


def _make_cumulative(
    name: str, combine: Combine, kinds: str, initial: Callable[[Any], object], says: str
) -> Running:
    def body(operand: Tracer, axis: int = 0, reverse: bool = False) -> Tracer:
        check_dtype_kind(name, "operand", operand.dtype, kinds)
        along = normalize_dimension(name, axis, operand.ndim)
        x = emit(hlo.reverse, operand, dimensions=[along]) if reverse else operand
        result = accumulate(combine, x, initial(operand.dtype), along)
        return emit(hlo.reverse, result, dimensions=[along]) if reverse else strong(result)

    name_operation(
        body,
        __name__,
        name,
        f"Returns {says} of the elements so far along ``axis``, with ``reverse`` from its end.",
        f"The dtype is one of these: {kind_words(kinds)} (else `DtypeError`); it stays, and so "
        "does the shape. Raises `AxisError` for an axis out of range.",
    )
    made: Running = operation(static=("axis", "reverse"))(body)
    return made


cumsum = _make_cumulative("cumsum", binary_combiner(hlo.add), "iufc", lambda _: 0, "the sum")
cumprod = _make_cumulative(
    "cumprod", binary_combiner(hlo.multiply), "iufc", lambda _: 1, "the product"
)
cummax = _make_cumulative("cummax", larger, "biufc", lowest, "the largest")
cummin = _make_cumulative("cummin", smaller, "biufc", highest, "the smallest")
cumlogsumexp = _make_cumulative(
    "cumlogsumexp", logaddexp, "f", lowest, "the logarithm of the sum of the exponentials"
)


@operation(static=("axis", "index_dtype"), weak_by="none")
def argmax(operand: Tracer, axis: int, index_dtype: DTypeLike) -> Tracer:
    """Returns the first index of the largest element along an axis; NaN counts as the largest.

    Real dtypes and bool; the result has ``index_dtype`` and lacks the axis. Raises `DtypeError`,
    `AxisError`, and `ArgumentError` for an axis of length 0. As ``jax.lax.argmax``.

    >>> lax.argmax(xp.asarray([3, 9, 4]), 0, xp.int32)
    Array(1, dtype=int32)
    """
    return _first_extreme("argmax", operand, axis, index_dtype, "GT", lowest)


@operation(static=("axis", "index_dtype"), weak_by="none")
def argmin(operand: Tracer, axis: int, index_dtype: DTypeLike) -> Tracer:
    """Returns the first index of the smallest element along an axis; NaN counts as the smallest.

    Real dtypes and bool; the result has ``index_dtype`` and lacks the axis. Raises `DtypeError`,
    `AxisError`, and `ArgumentError` for an axis of length 0. As ``jax.lax.argmin``.
    """
    return _first_extreme("argmin", operand, axis, index_dtype, "LT", highest)


def _first_extreme(
    name: str,
    operand: Tracer,
    axis: int,
    index_dtype: object,
    direction: str,
    initial: Callable[[Any], object],
) -> Tracer:
    check_dtype_kind(name, "operand", operand.dtype, "biuf")
    along = normalize_dimension(name, axis, operand.ndim)
    dtype = as_dtype(index_dtype)
    if dtype_kind(dtype) not in "iu":
        raise DtypeError(f"index_dtype of lax.{name} must be an integer dtype; got {dtype.name}")
    if not operand.shape[along]:
        raise ArgumentError(f"lax.{name} has nothing to choose from: axis {axis} has length 0")

    def better(x: Tracer, i: Tracer, y: Tracer, j: Tracer) -> list[Tracer]:
        wins = compare(x, y, direction)
        if dtype_kind(x.dtype) == "f":
            wins = emit(hlo.or_, wins, compare(x, x, "NE"))
        earlier = emit(hlo.and_, compare(x, y, "EQ"), compare(i, j, "LT"))
        if dtype_kind(x.dtype) == "f":
            both = emit(hlo.and_, compare(x, x, "NE"), compare(y, y, "NE"))
            later = emit(hlo.and_, both, compare(j, i, "LT"))
            wins = emit(hlo.and_, wins, emit(hlo.not_, later))
        index = emit_select(emit(hlo.or_, wins, earlier), i, j)
        return [emit_select(wins, x, y), index]

    starts = [constant(initial(operand.dtype), operand.dtype), constant(0, dtype)]
    indices = iota(operand.shape, along, dtype)
    return emit_reduce([strong(operand), indices], starts, [along], better)[1]
