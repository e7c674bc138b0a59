"""`scatter`, `scatter_add`… with StableHLO's dimension numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from plugrt.errors import DtypeError, InvalidOperation
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import TensorType
from plugrt.lax.control_flow.eager import launch
from plugrt.lax.gathering import GatherScatterMode, convert_indices, parse_mode
from plugrt.lax.operand_checks import check_dtype_kind, same_dtype
from plugrt.stablehlo.bindings import MLIRError
from plugrt.stablehlo.diagnostics import explain
from plugrt.tracing.argument_checks import kind_words
from plugrt.tracing.captures import as_tracer
from plugrt.tracing.emit import (
    active_trace,
    broadcast_in_dim,
    constant,
    emit,
    full,
    hlo,
    region,
    strong,
    wrap_one,
)
from plugrt.tracing.operation import OfKeys, operation
from plugrt.tracing.traceable import name_operation
from plugrt.tracing.tracer import Tracer
from plugrt.typing import ArrayLike

Scatter: TypeAlias = Callable[..., Any]


class ScatterDimensionNumbers(NamedTuple):
    """The roles of dimensions in a `scatter`; ``jax.lax.ScatterDimensionNumbers`` is accepted, too.

    The last dimension of the indices has the start for each dimension in
    ``scatter_dims_to_operand_dims``.
    """

    update_window_dims: Sequence[int]
    inserted_window_dims: Sequence[int]
    scatter_dims_to_operand_dims: Sequence[int]
    operand_batching_dims: Sequence[int] = ()
    scatter_indices_batching_dims: Sequence[int] = ()


def _make_scatter(
    name: str, combine: Callable[[Tracer, Tracer], Tracer], kinds: str, says: str
) -> Scatter:
    def body(
        operand: Tracer,
        scatter_indices: Tracer,
        updates: Tracer,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: GatherScatterMode | str | None = None,
    ) -> Tracer:
        operand, updates = same_dtype(name, ("operand", "updates"), [operand, updates])
        check_dtype_kind(name, "operand", operand.dtype, kinds)
        numbers = ScatterDimensionNumbers(*map(tuple, dimension_numbers))
        indices = convert_indices(name, scatter_indices)
        if parse_mode(name, mode) is GatherScatterMode.CLIP:
            indices = _clamp_indices(operand, indices, updates, numbers)
        flags = {"indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices}
        return _emit_scatter(name, combine, (operand, indices, updates), numbers, flags)

    name_operation(
        body,
        __name__,
        name,
        f"Returns ``operand`` with {says} the positions ``scatter_indices``.",
        "Updates beyond the array are left out, or with ``mode`` 'clip' moved into it; updates of "
        "one place are applied in unspecified order. ``operand`` and ``updates`` have one dtype, "
        f"one of these: {kind_words(kinds)}; the indices are integers. Raises `DtypeError` for "
        "others, `ArgumentError` for an unknown mode, `InvalidOperation` for numbers that do not "
        "fit.",
    )
    static = ("dimension_numbers", "indices_are_sorted", "unique_indices", "mode")
    keys: OfKeys = "each" if name == "scatter" else "none"
    keyed = ("operand", "updates")
    made: Scatter = operation(static=static, weak_by=("operand",), keys=keys, keyed=keyed)(body)
    return made


def _emit_scatter(
    name: str,
    combine: Callable[[Tracer, Tracer], Tracer],
    arrays: tuple[Tracer, Tracer, Tracer],
    numbers: ScatterDimensionNumbers,
    flags: dict[str, bool],
) -> Tracer:
    operand, indices, updates = arrays
    trace = active_trace()
    try:
        made = hlo.ScatterOp(
            [operand.value.type],
            [operand.value],
            indices.value,
            [updates.value],
            hlo.ScatterDimensionNumbers.get(
                list(numbers.update_window_dims),
                list(numbers.inserted_window_dims),
                list(numbers.operand_batching_dims),
                list(numbers.scatter_indices_batching_dims),
                list(numbers.scatter_dims_to_operand_dims),
                indices.ndim - 1,
            ),
            **flags,
            loc=trace.location(),
        )
        scalar = trace.mlir_type((), operand.dtype)
        region(made.regions[0], [scalar, scalar], lambda x, y: [combine(x, y)])
        made.operation.verify()
    except MLIRError as error:
        shapes = ", ".join(f"{x.dtype.name}{list(x.shape)}" for x in arrays)
        raise InvalidOperation(
            f"lax.{name} of {shapes} with {numbers}: {explain(error)}"
        ) from error
    return wrap_one(made)


def _clamp_indices(
    operand: Tracer, indices: Tracer, updates: Tracer, numbers: ScatterDimensionNumbers
) -> Tracer:
    """Returns the indices clamped so that the updates fit into the operand."""
    windows = iter(numbers.update_window_dims)
    absent = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    sizes = [1 if d in absent else updates.shape[next(windows)] for d in range(operand.ndim)]
    limits = [operand.shape[d] - sizes[d] for d in numbers.scatter_dims_to_operand_dims]
    top = np.minimum(np.asarray(limits, np.int64), np.iinfo(indices.dtype).max)
    most = broadcast_in_dim(constant(top, indices.dtype), indices.shape, (indices.ndim - 1,))
    clipped: Tracer = emit(hlo.clamp, full(indices.shape, 0, indices.dtype), indices, most)
    return clipped


def _make_combine(builder: Callable[..., object]) -> Callable[[Tracer, Tracer], Tracer]:
    def combine(x: Tracer, y: Tracer) -> Tracer:
        result: Tracer = emit(builder, x, y)
        return result

    return combine


@with_argument_errors
def scatter_apply(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    func: Callable[[Any], object],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: GatherScatterMode | str | None = None,
) -> Any:
    """Returns ``operand`` with ``func`` applied to the elements at ``scatter_indices``.

    ``func`` maps a scalar of the operand's dtype to another; it is applied twice to an element that
    is indexed twice. ``update_shape`` is the shape that the updates of another scatter would have;
    other arguments and errors are as for `scatter`. Raises `DtypeError` for a function that returns
    any other object. As ``jax.lax.scatter_apply``.

    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> at = xp.asarray([[0], [2], [2]])
    >>> double = lambda x: 2 * x
    >>> lax.scatter_apply(xp.asarray([1, 1, 1]), at, double, numbers, update_shape=(3,))
    Array([2, 1, 4], dtype=int32)
    """
    numbers = ScatterDimensionNumbers(*map(tuple, dimension_numbers))
    flags = {"indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices}
    clips = parse_mode("scatter_apply", mode) is GatherScatterMode.CLIP

    def apply(x: Tracer, _: Tracer) -> Tracer:
        returned = strong(as_tracer(func(x), "the result of func of lax.scatter_apply"))
        if (returned.shape, returned.dtype) != ((), x.dtype):
            raise DtypeError(
                f"func of lax.scatter_apply must return a scalar of {x.dtype.name}, the operand's "
                f"dtype; found {TensorType(returned.shape, returned.dtype)}"
            )
        return returned

    def run(operand: Tracer, scatter_indices: Tracer) -> Tracer:
        operand = strong(operand)
        indices = convert_indices("scatter_apply", scatter_indices)
        updates = full(update_shape, 0, operand.dtype)
        if clips:
            indices = _clamp_indices(operand, indices, updates, numbers)
        return _emit_scatter("scatter_apply", apply, (operand, indices, updates), numbers, flags)

    key = (numbers, tuple(update_shape), *flags.items(), clips)
    given = {"operand": operand, "scatter_indices": scatter_indices}
    return launch("scatter_apply", (func,), key, given, run, reads_once=True)


scatter = _make_scatter("scatter", lambda _, y: y, "biufc", "``updates`` at")
scatter_add = _make_scatter("scatter_add", _make_combine(hlo.add), "iufc", "``updates`` added at")
scatter_sub = _make_scatter(
    "scatter_sub", _make_combine(hlo.subtract), "iufc", "``updates`` subtracted at"
)
scatter_mul = _make_scatter(
    "scatter_mul", _make_combine(hlo.multiply), "iufc", "elements multiplied by ``updates`` at"
)
scatter_min = _make_scatter(
    "scatter_min", _make_combine(hlo.minimum), "biuf", "the smaller of old and new elements at"
)
scatter_max = _make_scatter(
    "scatter_max", _make_combine(hlo.maximum), "biuf", "the larger of old and new elements at"
)
