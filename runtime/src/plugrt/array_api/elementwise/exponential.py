"""Elementwise exponentials, logarithms, roots, `hypot` and `logaddexp`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from plugrt.array_api.elementwise.complex import apply_symmetric
from plugrt.array_api.elementwise.operands import FLOATING, REAL_FLOATING, binary, unary
from plugrt.array_api.sorting import complex_parts
from plugrt.tracing.emit import compare, convert, emit, full, hlo, select, widen, with_weakness
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import dtype_kind, is_weak_result
from plugrt.tracing.tracer import Tracer


@operation
def exp(x: Tracer, /) -> Tracer:
    """Returns e to the power ``x``. Floating dtypes.

    The result has the shape of ``x``; bool and integers are converted as in `divide`.
    Raises `NotAnArray`.
    """
    x = unary("exp", x, FLOATING)
    if dtype_kind(x.dtype) != "c":
        return emit(hlo.exponential, x)
    # Workaround for xla-complex-exponential: XLA (jaxlib 0.10.2) gives NaN for exp(-inf + i*y) with
    # y infinite or NaN; C99 has 0.
    u, v = complex_parts(x)
    lowest = compare(u, full(u.shape, -np.inf, u.dtype), "EQ")
    vanishes = emit(hlo.and_, lowest, emit(hlo.not_, emit(hlo.is_finite, v)))
    return select(vanishes, full(x.shape, 0, x.dtype), emit(hlo.exponential, x))


@operation
def expm1(x: Tracer, /) -> Tracer:
    """Returns ``exp(x) - 1``, exact also where ``x`` is small. Floating dtypes.

    The result has the shape of ``x``; bool and integers are converted as in `divide`.
    Raises `NotAnArray`.
    """
    return emit(hlo.exponential_minus_one, unary("expm1", x, FLOATING))


@operation
def log(x: Tracer, /) -> Tracer:
    """Returns the natural logarithm; NaN for negative reals. Floating dtypes.

    The result has the shape of ``x``; bool and integers are converted as in `divide`.
    Raises `NotAnArray`.
    """
    return emit(hlo.log, unary("log", x, FLOATING))


@operation
def log1p(x: Tracer, /) -> Tracer:
    """Returns ``log(1 + x)``, exact also where ``x`` is small. Floating dtypes.

    The result has the shape of ``x``; bool and integers are converted as in `divide`.
    Raises `NotAnArray`.
    """
    return emit(hlo.log_plus_one, unary("log1p", x, FLOATING))


@operation(weak_by="none")
def log2(x: Tracer, /) -> Tracer:
    """Returns the logarithm to base 2. Floating dtypes.

    The result has the shape of ``x``; bool and integers are converted as in `divide`.
    Raises `NotAnArray`.
    """
    return _scaled_log(unary("log2", x, FLOATING), hlo.divide, np.log(2))


@operation(weak_by="none")
def log10(x: Tracer, /) -> Tracer:
    """Returns the logarithm to base 10. Floating dtypes.

    The result has the shape of ``x``; bool and integers are converted as in `divide`.
    Raises `NotAnArray`.
    """
    # As in JAX: with a division by ln 10 few powers of 10 would give whole numbers.
    return _scaled_log(unary("log10", x, FLOATING), hlo.multiply, math.log10(math.e))


def _scaled_log(x: Tracer, scale: Any, factor: float) -> Tracer:
    def scaled(part: Tracer) -> Tracer:
        return emit(scale, part, full(part.shape, factor, part.dtype))

    if dtype_kind(x.dtype) == "c":
        # Part by part: a complex division would turn infinities into NaN.
        return emit(hlo.complex, *[scaled(p) for p in complex_parts(emit(hlo.log, x))])
    return convert(scaled(emit(hlo.log, widen(x))), x.dtype)


@operation
def sqrt(x: Tracer, /) -> Tracer:
    """Returns the square root; NaN for negative reals. Floating dtypes.

    The result has the shape of ``x``; bool and integers are converted as in `divide`.
    Raises `NotAnArray`.
    """
    x = unary("sqrt", x, FLOATING)
    return apply_symmetric(_complex_root, x) if dtype_kind(x.dtype) == "c" else emit(hlo.sqrt, x)


def _complex_root(z: Tracer) -> Tracer:
    # Workaround for xla-complex-root: XLA (jaxlib 0.10.2) gives NaN for sqrt(NaN + i*inf); C99 has
    # inf + i*inf.
    y = complex_parts(z)[1]
    infinite = full(y.shape, np.inf, y.dtype)
    both = emit(hlo.complex, infinite, infinite)
    return select(compare(y, infinite, "EQ"), both, emit(hlo.sqrt, z))


@operation(weak_by="body")
def hypot(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns ``sqrt(x1**2 + x2**2)`` without overflow on the way. Real floating dtypes.

    An infinity gives infinity, even where the other is NaN. The arrays broadcast and promote, else
    `ShapeError` or `DtypeError`. Raises `DtypeError` for complex numbers.
    """
    a, b = binary("hypot", x1, x2, REAL_FLOATING)
    dtype = a.dtype
    a, b = emit(hlo.abs, widen(a)), emit(hlo.abs, widen(b))
    zero, one = full(a.shape, 0, a.dtype), full(a.shape, 1, a.dtype)
    infinite = full(a.shape, np.inf, a.dtype)
    large, small = emit(hlo.maximum, a, b), emit(hlo.minimum, a, b)
    ratio = emit(hlo.divide, small, select(compare(large, zero, "EQ"), one, large))
    root = emit(hlo.sqrt, emit(hlo.add, one, emit(hlo.multiply, ratio, ratio)))
    either = emit(hlo.or_, compare(a, infinite, "EQ"), compare(b, infinite, "EQ"))
    length = convert(select(either, infinite, emit(hlo.multiply, large, root)), dtype)
    # In JAX only scalars stay weak: it adds zeros_like, which is not weak, to others.
    return with_weakness(
        length, not length.shape and is_weak_result([(x.dtype, x.weak) for x in (x1, x2)])
    )


@operation
def logaddexp(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns ``log(exp(x1) + exp(x2))`` without overflow on the way. Real floating dtypes.

    The arrays broadcast and promote, else `ShapeError` or `DtypeError`.
    """
    a, b = binary("logaddexp", x1, x2, REAL_FLOATING)
    dtype = a.dtype
    a, b = widen(a), widen(b)
    distance = emit(hlo.negate, emit(hlo.abs, emit(hlo.subtract, a, b)))
    # Equal infinities have no distance.
    distance = select(compare(a, b, "EQ"), full(a.shape, 0, a.dtype), distance)
    excess = emit(hlo.log_plus_one, emit(hlo.exponential, distance))
    return convert(emit(hlo.add, emit(hlo.maximum, a, b), excess), dtype)
