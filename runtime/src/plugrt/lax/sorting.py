"""`sort`, `sort_key_val`, `top_k`, `approx_max_k` and `approx_min_k`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import numpy as np

from plugrt.errors import ArgumentError, ArgumentTypeError, DtypeError, ShapeError, Unimplemented
from plugrt.lax.dimension_arguments import normalize_dimension
from plugrt.lax.operand_checks import check_dtype_kind
from plugrt.stablehlo.types import compare_attributes
from plugrt.tracing.emit import (
    active_trace,
    compare,
    constant,
    emit,
    hlo,
    iota,
    region,
    slice_,
    transpose,
    with_weakness,
    wrap,
)
from plugrt.tracing.emit import select as emit_select
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import dtype_kind
from plugrt.tracing.tracer import Tracer


@overload
def sort(
    operand: Tracer, dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> Tracer: ...
@overload
def sort(
    operand: Sequence[Tracer], dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> tuple[Tracer, ...]: ...
@operation(static=("dimension", "is_stable", "num_keys"), weak_by="body")
def sort(
    operand: Tracer | Sequence[Tracer],
    dimension: int = -1,
    is_stable: bool = True,
    num_keys: int = 1,
) -> Tracer | tuple[Tracer, ...]:
    """Returns an array, or several of one shape, in ascending order along a dimension.

    Several are sorted together: by the first, then by the next ones, up to ``num_keys``; the others
    are permuted alike. NaN comes last, -0 equals 0, complex numbers go by their real and then their
    imaginary part. Any dtype. Raises `ShapeError` where the shapes differ, `AxisError`, and
    `ArgumentError` for a wrong ``num_keys``. As ``jax.lax.sort``.

    >>> lax.sort((xp.asarray([2, 1]), xp.asarray([20, 10])))
    (Array([1, 2], dtype=int32), Array([10, 20], dtype=int32))
    """
    arrays = [operand] if isinstance(operand, Tracer) else list(operand)
    if not arrays:
        raise ArgumentError("lax.sort needs at least one array")
    if not 1 <= num_keys <= len(arrays):
        raise ArgumentError(
            f"num_keys of lax.sort must be between 1 and {len(arrays)}, the number of arrays; got "
            f"{num_keys}"
        )
    if any(x.shape != arrays[0].shape for x in arrays):
        shapes = ", ".join(str(x.shape) for x in arrays)
        raise ShapeError(f"lax.sort takes arrays of one shape; found {shapes}")
    at = normalize_dimension("sort", dimension, arrays[0].ndim)
    result = sort_together(arrays, at, num_keys, stable=is_stable)
    return result[0] if isinstance(operand, Tracer) else tuple(result)


@operation(static=("dimension", "is_stable"), weak_by="body")
def sort_key_val(
    keys: Tracer, values: Tracer, dimension: int = -1, is_stable: bool = True
) -> tuple[Tracer, Tracer]:
    """Returns keys in ascending order and their values.

    Both have one shape; any dtypes. Raises `ShapeError` or `AxisError`. As
    ``jax.lax.sort_key_val``.
    """
    in_order, follow = sort((keys, values), dimension, is_stable, 1)
    return in_order, follow


@operation(static=("k", "axis"))
def top_k(operand: Tracer, k: int, *, axis: int = -1) -> list[Tracer]:
    """Returns the k largest elements along an axis, descending, and their indices (int32).

    Of equal elements the first comes first; NaN is the largest. Real dtypes and bool. Raises
    `DtypeError`, `AxisError`, and `ArgumentError` for a ``k`` beyond the axis. As
    ``jax.lax.top_k``.

    >>> lax.top_k(xp.asarray([3, 9, 4]), 2)
    [Array([9, 4], dtype=int32), Array([1, 2], dtype=int32)]
    """
    check_dtype_kind("top_k", "operand", operand.dtype, "biuf")
    at = normalize_dimension("top_k", axis, operand.ndim)
    if not 0 <= k <= operand.shape[at]:
        raise ArgumentError(
            f"k of lax.top_k must be between 0 and {operand.shape[at]}, the length of axis {axis}; "
            f"got {k}"
        )
    order = [*(i for i in range(operand.ndim) if i != at), at]
    last = transpose(operand, order)
    indices = iota(last.shape, last.ndim - 1, np.dtype(np.int32))
    found = sort_together([last, indices], last.ndim - 1, 1, stable=True, descending=True)
    limit = [*last.shape[:-1], k]
    back = [order.index(i) for i in range(operand.ndim)]
    return [transpose(slice_(x, [0] * x.ndim, limit, [1] * x.ndim), back) for x in found]


def sort_together(
    arrays: Sequence[Tracer], dimension: int, keys: int, *, stable: bool, descending: bool = False
) -> list[Tracer]:
    """Returns arrays of one shape sorted together by the first ``keys`` of them."""
    trace = active_trace()
    values = [x.value for x in arrays]
    operation = hlo.SortOp(
        [v.type for v in values],
        values,
        dimension=dimension,
        is_stable=stable,
        loc=trace.location(),
    )
    scalars = [trace.mlir_type((), x.dtype) for x in arrays for _ in range(2)]

    def before(*pairs: Tracer) -> list[Tracer]:
        return [_compare_pairs(pairs[: 2 * keys], "GT" if descending else "LT")]

    region(operation.regions[0], scalars, before)
    return [with_weakness(y, x.weak) for y, x in zip(wrap(operation), arrays, strict=True)]


def _compare_pairs(pairs: Sequence[Tracer], direction: str) -> Tracer:
    """Returns whether the first elements of the pairs precede the second lexicographically."""
    flat: list[tuple[Tracer, Tracer]] = []
    for x, y in zip(pairs[::2], pairs[1::2], strict=True):
        if x.dtype.kind == "c":
            flat += [(emit(part, x), emit(part, y)) for part in (hlo.real, hlo.imag)]
        else:
            flat.append((x, y))
    result: Tracer | None = None
    for x, y in reversed(flat):
        x, y = _canonicalize(x), _canonicalize(y)
        less = _compare_total(x, y, direction)
        if result is not None:
            less = emit(hlo.or_, less, emit(hlo.and_, _compare_total(x, y, "EQ"), result))
        result = less
    assert result is not None
    return result


def _canonicalize(x: Tracer) -> Tracer:
    """Returns floats with one zero and one NaN, which the total order puts last."""
    if dtype_kind(x.dtype) != "f":
        return x
    zero = constant(0, x.dtype)
    x = emit_select(compare(x, zero, "EQ"), zero, x)
    return emit_select(compare(x, x, "NE"), constant(np.nan, x.dtype), x)


def _compare_total(x: Tracer, y: Tracer, direction: str) -> Tracer:
    if dtype_kind(x.dtype) != "f":
        return compare(x, y, direction)
    result: Tracer = emit(hlo.compare, x, y, **compare_attributes(x.dtype, direction, total=True))
    return result


_STATIC = (
    "k",
    "reduction_dimension",
    "recall_target",
    "reduction_input_size_override",
    "aggregate_to_topk",
)


@operation(static=_STATIC)
def approx_max_k(
    operand: Tracer,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Tracer]:
    """Returns the k largest elements along a dimension, descending, and their indices (int32).

    As ``jax.lax.approx_max_k``, except that the result is exact on every platform, as with `top_k`:
    ``recall_target``, a fraction, is always reached, and no time is saved on TPUs. Floats. Raises
    `DtypeError` for others, `ArgumentError` for an invalid ``k`` or target, `ArgumentTypeError` for
    a scalar, and `Unimplemented` for ``aggregate_to_topk=False``, which requests the unsorted
    candidates of the approximation.

    >>> lax.approx_max_k(xp.asarray([3.0, 9.0, 4.0]), 2)
    [Array([9., 4.], dtype=float32), Array([1, 2], dtype=int32)]
    """
    dimension = _check("approx_max_k", operand, k, reduction_dimension, recall_target)
    _require_whole("approx_max_k", aggregate_to_topk)
    found: list[Tracer] = top_k(operand, k, axis=dimension)
    return found


@operation(static=_STATIC)
def approx_min_k(
    operand: Tracer,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Tracer]:
    """Returns the k smallest elements along a dimension, ascending, and their indices (int32).

    As ``jax.lax.approx_min_k``; raises the errors of `approx_max_k`, such as `DtypeError` and
    `ArgumentError`.

    >>> lax.approx_min_k(xp.asarray([3.0, 9.0, 4.0]), 2)
    [Array([3., 4.], dtype=float32), Array([0, 2], dtype=int32)]
    """
    dimension = _check("approx_min_k", operand, k, reduction_dimension, recall_target)
    _require_whole("approx_min_k", aggregate_to_topk)
    values, indices = top_k(-operand, k, axis=dimension)
    return [-values, indices]


def _check(name: str, operand: Tracer, k: int, dimension: int, recall_target: float) -> int:
    if not operand.ndim:
        raise ArgumentTypeError(f"lax.{name} takes an array of one dimension or more; got a scalar")
    if dtype_kind(operand.dtype) != "f":
        raise DtypeError(f"lax.{name} takes floats; operand is {operand.dtype.name}")
    at = normalize_dimension(name, dimension, operand.ndim)
    if not 0 < k <= operand.shape[at]:
        raise ArgumentError(
            f"k of lax.{name} must be between 1 and {operand.shape[at]}, the length of dimension "
            f"{dimension}; got {k}"
        )
    if not 0 < recall_target <= 1:
        raise ArgumentError(
            f"recall_target of lax.{name} is a fraction above 0; got {recall_target!r}"
        )
    return at


def _require_whole(name: str, aggregate: bool) -> None:
    if not aggregate:
        raise Unimplemented(
            f"lax.{name} with aggregate_to_topk=False: nothing is approximated here, so that there "
            "is no larger result to leave unsorted. Leave the argument out"
        )
