"""`ragged_dot` and `ragged_dot_general`: products of groups of rows, each with its own matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from plugrt.errors import (
    ArgumentError,
    ArgumentTypeError,
    AxisError,
    DtypeError,
    ShapeError,
    Unimplemented,
)
from plugrt.lax.contraction import DotDimensionNumbers, dot_general
from plugrt.lax.precision import PrecisionLike
from plugrt.lax.reductions import cumsum
from plugrt.tracing.emit import (
    broadcast_in_dim,
    broadcast_to,
    compare,
    emit,
    full,
    hlo,
    iota,
    select,
    transpose,
)
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import dtype_kind
from plugrt.tracing.tracer import Tracer
from plugrt.typing import DTypeLike

Pair: TypeAlias = tuple[Sequence[int], Sequence[int]]


@dataclass(frozen=True, init=False)
class RaggedDotDimensionNumbers:
    """Dimension numbers of a product, the ragged dimension of lhs, and the group dimension of rhs.

    As ``jax.lax.RaggedDotDimensionNumbers``.
    """

    dot_dimension_numbers: DotDimensionNumbers
    lhs_ragged_dimensions: Sequence[int]
    rhs_group_dimensions: Sequence[int]

    def __init__(
        self,
        dot_dimension_numbers: Any,
        lhs_ragged_dimensions: Sequence[int],
        rhs_group_dimensions: Sequence[int],
    ) -> None:
        try:
            numbers = tuple(tuple(map(tuple, pair)) for pair in dot_dimension_numbers)
            ragged, groups = tuple(lhs_ragged_dimensions), tuple(rhs_group_dimensions)
        except TypeError as error:
            raise ArgumentTypeError(
                "lax.RaggedDotDimensionNumbers takes the numbers of dot_general, as in (((1,), "
                f"(1,)), ((), ())), and two sequences of dimensions; {error}"
            ) from error
        object.__setattr__(self, "dot_dimension_numbers", numbers)
        object.__setattr__(self, "lhs_ragged_dimensions", ragged)
        object.__setattr__(self, "rhs_group_dimensions", groups)


_MATRICES = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))


@operation(static=("precision", "preferred_element_type"), weak_by="body")
def ragged_dot(
    lhs: Tracer,
    rhs: Tracer,
    group_sizes: Tracer,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: Tracer | None = None,
) -> Tracer:
    """Returns groups of rows of ``lhs`` (m, k), each times its matrix of ``rhs`` (g, k, n): (m, n).

    The first ``group_sizes[0]`` rows are multiplied by the first matrix, and so on; remaining rows
    give zeros. ``group_sizes`` (g,) are integers. Each row is multiplied by all g matrices, in g
    times the work. ``group_offset`` is refused (`Unimplemented`), as by JAX's lowering. Raises as
    `ragged_dot_general`. As ``jax.lax.ragged_dot``.

    >>> x, y = xp.ones((3, 2)), xp.stack([xp.ones((2, 1)), xp.full((2, 1), 10.0)])
    >>> lax.ragged_dot(x, y, xp.asarray([1, 2]))[:, 0]
    Array([ 2., 20., 20.], dtype=float32)
    """
    result: Tracer = ragged_dot_general(
        lhs, rhs, group_sizes, _MATRICES, precision, preferred_element_type, group_offset
    )
    return result


@operation(
    static=("ragged_dot_dimension_numbers", "precision", "preferred_element_type"), weak_by="body"
)
def ragged_dot_general(
    lhs: Tracer,
    rhs: Tracer,
    group_sizes: Tracer,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: Tracer | None = None,
) -> Tracer:
    """Returns `dot_general` with a dimension of ``lhs`` that consists of consecutive groups.

    If that is a free dimension, each group is multiplied by its part of ``rhs`` along the latter's
    group dimension. If it is contracted, each group is summed separately, and the result has the
    groups as a new first dimension. If it is a batch dimension, the groups have no effect.
    ``group_sizes`` is (g,), or (…, g) with the dimensions of ``lhs`` of the same kind before the
    ragged one, and the batch. Raises `ShapeError` for sizes that differ, `ArgumentError` for other
    numbers of ragged or group dimensions, `DtypeError` for group sizes that are no integers, and as
    `dot_general`. As ``jax.lax.ragged_dot_general``.
    """
    if group_offset is not None:
        raise Unimplemented("lax.ragged_dot has no group_offset yet: slice group_sizes and rhs")
    numbers = ragged_dot_dimension_numbers
    ragged, outer = _read_ragged(lhs, numbers)
    _check_groups(lhs, rhs, group_sizes, numbers, outer)
    (left, right), (left_batch, right_batch) = numbers.dot_dimension_numbers
    if ragged in left:
        partners = dict(zip((*left, *left_batch), (*right, *right_batch), strict=True))
        outer_of_rhs = [partners[d] for d in outer]
        contract: Pair = (_shift(left), _shift(right))
        batch: Pair = ((0, *_shift(left_batch)), (0, *_shift(right_batch)))
        lhs = _mask_groups(lhs, ragged, group_sizes, outer)
        rhs = _mask_groups(rhs, partners[ragged], group_sizes, outer_of_rhs)
    elif ragged in left_batch:
        contract, batch = (left, right), (left_batch, right_batch)
    else:
        contract = ((*_shift(left), 0), (*right, numbers.rhs_group_dimensions[0]))
        batch = (_shift(left_batch), right_batch)
        lhs = _mask_groups(lhs, ragged, group_sizes, outer)
    result: Tracer = dot_general(lhs, rhs, (contract, batch), precision, preferred_element_type)
    return result


def _shift(dimensions: Sequence[int]) -> tuple[int, ...]:
    """Returns dimensions shifted by one, for a new leading dimension."""
    return tuple(d + 1 for d in dimensions)


def _read_ragged(lhs: Tracer, numbers: RaggedDotDimensionNumbers) -> tuple[int, tuple[int, ...]]:
    """Returns the ragged dimension, and the dimensions before it that ``group_sizes`` has."""
    (left, _), (batch, _) = numbers.dot_dimension_numbers
    if len(numbers.lhs_ragged_dimensions) != 1:
        raise ArgumentError(
            "lax.ragged_dot_general takes one ragged dimension of lhs; found "
            f"{tuple(numbers.lhs_ragged_dimensions)}"
        )
    ragged = numbers.lhs_ragged_dimensions[0]
    if not 0 <= ragged < lhs.ndim:
        raise AxisError(
            f"the ragged dimension of lax.ragged_dot_general is {ragged}; lhs of shape {lhs.shape} "
            f"has those from 0 to {lhs.ndim - 1}"
        )
    if ragged in batch:
        return ragged, tuple(batch[: list(batch).index(ragged)])
    free = [d for d in range(lhs.ndim) if d not in (*left, *batch)]
    alike = list(left) if ragged in left else free
    return ragged, (*batch, *alike[: alike.index(ragged)])


def _check_groups(
    lhs: Tracer,
    rhs: Tracer,
    group_sizes: Tracer,
    numbers: RaggedDotDimensionNumbers,
    outer: Sequence[int],
) -> None:
    """Raises unless the group sizes and the group dimension of rhs fit the ragged dimension."""
    title = "lax.ragged_dot_general"
    if dtype_kind(group_sizes.dtype) not in "iu":
        raise DtypeError(f"group_sizes of {title} are integers; found {group_sizes.dtype.name}")
    (left, right), (batch, right_batch) = numbers.dot_dimension_numbers
    shapes = [(*(lhs.shape[d] for d in outer), *group_sizes.shape[-1:]), group_sizes.shape[-1:]]
    if not group_sizes.ndim or group_sizes.shape not in shapes:
        raise ShapeError(
            f"group_sizes of {title} have shape {group_sizes.shape}; for lhs of shape {lhs.shape} "
            f"they take one size for each group, or {(*shapes[0][:-1], 'groups')}"
        )
    groups = tuple(numbers.rhs_group_dimensions)
    wanted = 0 if numbers.lhs_ragged_dimensions[0] in (*left, *batch) else 1
    if len(groups) != wanted or any(not 0 <= d < rhs.ndim for d in groups):
        raise ArgumentError(
            f"{title} takes {wanted} group dimensions of rhs for this ragged dimension of lhs; "
            f"found {groups} for rhs of shape {rhs.shape}"
        )
    if groups and (groups[0] in (*right, *right_batch)):
        raise ArgumentError(
            f"the group dimension of rhs of {title} is {groups[0]}, which is contracted or a batch"
        )
    if groups and rhs.shape[groups[0]] != group_sizes.shape[-1]:
        raise ShapeError(
            f"rhs of {title} has shape {rhs.shape} with {rhs.shape[groups[0]]} groups; group_sizes "
            f"of shape {group_sizes.shape} have {group_sizes.shape[-1]}"
        )


def _mask_groups(x: Tracer, ragged: int, group_sizes: Tracer, outer: Sequence[int]) -> Tracer:
    """Returns ``x`` once for each group, along a new first dimension, with zeros for all others."""
    groups = group_sizes.shape[-1]
    sizes = broadcast_to(group_sizes, (*(x.shape[d] for d in outer), groups))
    ends: Tracer = cumsum(sizes, axis=sizes.ndim - 1)
    starts = emit(hlo.subtract, ends, sizes)
    shape = (groups, *x.shape)
    places = (*_shift(outer), 0)
    order = sorted(range(len(places)), key=places.__getitem__)

    def spread(bounds: Tracer) -> Tracer:
        return broadcast_in_dim(transpose(bounds, order), shape, sorted(places))

    position = iota(shape, ragged + 1, sizes.dtype)
    after = compare(position, spread(starts), "GE")
    before = compare(position, spread(ends), "LT")
    copies = broadcast_to(x, shape)
    return select(emit(hlo.and_, after, before), copies, full(shape, 0, x.dtype))
