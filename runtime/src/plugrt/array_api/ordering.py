"""Ordering of elements: real numbers by value, complex ones by real, then imaginary part.

NaN comes after every number, and so does a complex number of which a part is NaN after those with
the same beginning, as in NumPy and JAX.
"""

from __future__ import annotations

from plugrt.tracing.emit import compare, emit, hlo, select
from plugrt.tracing.promotion import dtype_kind
from plugrt.tracing.tracer import Tracer


def compare_ordered(x: Tracer, y: Tracer, direction: str) -> Tracer:
    """Returns booleans of ``x DIRECTION y``: LT LE GT GE. Complex numbers by their parts."""
    if dtype_kind(x.dtype) != "c":
        return compare(x, y, direction)
    (a, b), (c, d) = complex_parts(x), complex_parts(y)
    return select(compare(a, c, "EQ"), compare(b, d, direction), compare(a, c, direction))


def sorts_before(x: Tracer, y: Tracer) -> Tracer:
    """Returns booleans: whether elements of ``x`` stand before those of ``y``, NaN being last."""
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

    For complex numbers JAX (0.10) gives NaN only where the second is NaN, so that reductions depend
    on the order of elements; this function is commutative.
    """
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


__all__ = ["compare_ordered", "complex_parts", "larger", "smaller", "sorts_before"]
