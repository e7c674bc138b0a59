"""`sort` and `argsort`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from plugrt.array_api.elementwise.operands import unary
from plugrt.array_api.ordering import sorts_before
from plugrt.tracing.argument_checks import normalize_axis
from plugrt.tracing.emit import active_trace, hlo, iota, region, wrap
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import default_int
from plugrt.tracing.tracer import Tracer


@operation(static=("axis", "descending", "stable"))
def sort(x: Tracer, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Tracer:
    """Returns ``x`` sorted along ``axis``, ascending or ``descending``.

    NaN counts as greater than any number, so NaNs come last when ascending. Complex numbers go by
    their real and then by their imaginary part. ``stable`` keeps the order of equal elements (of
    0.0 and -0.0, here). Any dtype, which stays, as does the shape. Raises `AxisError`.

    >>> xp.sort(xp.asarray([3, 1, 2]))
    Array([1, 2, 3], dtype=int32)
    """
    x = unary("sort", x)
    along = normalize_axis("sort", axis, x.ndim)
    return sort_together([x], along, descending=descending, stable=stable)[0]


@operation(static=("axis", "descending", "stable"), weak_by="none")
def argsort(
    x: Tracer, /, axis: int = -1, *, descending: bool = False, stable: bool = True
) -> Tracer:
    """Returns the positions along ``axis`` that sort ``x``, in the default integer dtype.

    NaN counts as greater than any number. ``stable`` keeps the order of equal elements, also when
    ``descending``. `take_along_axis` applies the result. Any dtype; the shape stays. Raises
    `AxisError`.

    >>> xp.argsort(xp.asarray([3, 1, 2]), descending=True)
    Array([0, 2, 1], dtype=int32)
    """
    x = unary("argsort", x)
    along = normalize_axis("argsort", axis, x.ndim)
    positions = iota(x.shape, along, default_int())
    return sort_together([x, positions], along, descending=descending, stable=stable)[1]


def sort_together(
    operands: Sequence[Tracer], axis: int, *, descending: bool = False, stable: bool = True
) -> tuple[Tracer, ...]:
    """Returns arrays of one shape sorted together along ``axis`` by the first of them."""
    trace = active_trace()
    op = hlo.SortOp(
        [x.value.type for x in operands],
        [x.value for x in operands],
        dimension=axis,
        is_stable=stable,
        loc=trace.location(),
    )
    scalars = [trace.mlir_type((), x.dtype) for x in operands for _ in range(2)]
    order: Callable[..., Tracer] = (lambda a, b: sorts_before(b, a)) if descending else sorts_before
    region(op.regions[0], scalars, lambda a, b, *_: [order(a, b)])
    return wrap(op)


__all__ = ["argsort", "sort", "sort_together"]
