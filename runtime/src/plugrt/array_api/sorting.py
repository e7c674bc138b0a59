"""`sort`, `argsort`, and their order: by value; complex numbers by real, then imaginary part.

NaN comes after every number; a complex number with a NaN part comes after numbers that are equal in
the parts before it, as in NumPy and JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from plugrt.array_api.elementwise.operands import unary
from plugrt.tracing.argument_checks import normalize_axis
from plugrt.tracing.emit import active_trace, compare, emit, hlo, iota, region, select, wrap
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import default_int, dtype_kind
from plugrt.tracing.tracer import Tracer


def compare_ordered(x: Tracer, y: Tracer, direction: str) -> Tracer:
    """Returns booleans of ``x DIRECTION y``: LT LE GT GE. Complex numbers by their parts."""
    if dtype_kind(x.dtype) != "c":
        return compare(x, y, direction)
    (a, b), (c, d) = complex_parts(x), complex_parts(y)
    return select(compare(a, c, "EQ"), compare(b, d, direction), compare(a, c, direction))


def sorts_before(x: Tracer, y: Tracer) -> Tracer:
    """Returns booleans: whether elements of ``x`` precede elements of ``y``; NaN is last."""
    kind = dtype_kind(x.dtype)
    if kind == "c":
        (a, b), (c, d) = complex_parts(x), complex_parts(y)
        tied = emit(hlo.not_, emit(hlo.or_, sorts_before(a, c), sorts_before(c, a)))
        return emit(hlo.or_, sorts_before(a, c), emit(hlo.and_, tied, sorts_before(b, d)))
    less = compare(x, y, "LT")
    if kind != "f":
        return less
    number, nan = compare(x, x, "EQ"), compare(y, y, "NE")
    return emit(hlo.or_, less, emit(hlo.and_, number, nan))


def larger(x: Tracer, y: Tracer) -> Tracer:
    """Returns the larger of both, NaN where one is NaN. One shape and dtype.

    For complex numbers JAX (0.10) returns NaN only if the second is NaN, so that reductions depend
    on the order of elements; this function is commutative.
    """
    # Workaround for jax-complex-maximum
    return _choose(x, y, "GT") if dtype_kind(x.dtype) == "c" else emit(hlo.maximum, x, y)


def smaller(x: Tracer, y: Tracer) -> Tracer:
    """Returns the smaller of both, NaN where one is NaN. One shape and dtype."""
    return _choose(x, y, "LT") if dtype_kind(x.dtype) == "c" else emit(hlo.minimum, x, y)


def _choose(x: Tracer, y: Tracer, direction: str) -> Tracer:
    # NaN wins over any number.
    wins = emit(hlo.and_, compare_ordered(x, y, direction), compare(y, y, "EQ"))
    return select(emit(hlo.or_, wins, compare(x, x, "NE")), x, y)


def complex_parts(x: Tracer) -> tuple[Tracer, Tracer]:
    """Returns the real and the imaginary part of a complex array."""
    return emit(hlo.real, x), emit(hlo.imag, x)


@operation(static=("axis", "descending", "stable"))
def sort(x: Tracer, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Tracer:
    """Returns ``x`` sorted along ``axis``, ascending or ``descending``.

    NaN counts as greater than any number, so NaNs come last when ascending. Complex numbers go by
    their real and then by their imaginary part. ``stable`` keeps the order of equal elements, such
    as 0.0 and -0.0. Any dtype, which stays, as does the shape. Raises `AxisError`.

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
    ``descending``. `take_along_axis` applies the result. Any dtype. Keeps the shape. Raises
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


__all__ = [
    "argsort", "compare_ordered", "complex_parts", "larger", "smaller", "sort", "sort_together",
    "sorts_before",
]  # fmt: skip
