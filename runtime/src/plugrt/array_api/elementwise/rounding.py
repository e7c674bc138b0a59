"""Elementwise rounding: `ceil`, `floor`, `trunc` and `round`."""

from __future__ import annotations

import math
import operator

import numpy as np

from plugrt.array_api.data_types import finfo
from plugrt.array_api.elementwise.operands import REAL_OR_BOOLEAN, SIGNED, unary
from plugrt.errors import Unimplemented
from plugrt.tracing.emit import compare, convert, emit, full, hlo, select, with_weakness
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import dtype_kind, itemsize_bits
from plugrt.tracing.tracer import Tracer


@operation
def ceil(x: Tracer, /) -> Tracer:
    """Returns the smallest whole number that is not less than ``x``. Real dtypes and bool.

    Keeps the shape and dtype. Raises `DtypeError` for complex numbers.
    """
    x = unary("ceil", x, REAL_OR_BOOLEAN)
    return emit(hlo.ceil, x) if dtype_kind(x.dtype) == "f" else x


@operation
def floor(x: Tracer, /) -> Tracer:
    """Returns the largest whole number that is not greater than ``x``. Real dtypes and bool.

    Keeps the shape and dtype. Raises `DtypeError` for complex numbers.
    """
    x = unary("floor", x, REAL_OR_BOOLEAN)
    return emit(hlo.floor, x) if dtype_kind(x.dtype) == "f" else x


@operation
def trunc(x: Tracer, /) -> Tracer:
    """Returns ``x`` without its fraction. Real dtypes and bool.

    Keeps the shape and dtype. Raises `DtypeError` for complex numbers.
    """
    x = unary("trunc", x, REAL_OR_BOOLEAN)
    if dtype_kind(x.dtype) != "f":
        return x
    below = compare(x, full(x.shape, 0, x.dtype), "LT")
    return select(below, emit(hlo.ceil, x), emit(hlo.floor, x))


@operation(static=("decimals",), weak_by="body")
def round(x: Tracer, /, decimals: int = 0) -> Tracer:
    """Returns ``x`` rounded to ``decimals`` places, halves to even; for complex, of each part.

    As in JAX integers are returned unchanged, and raise `Unimplemented` for a negative number of
    places; floats are scaled, rounded and scaled back, so that the last digit may be off by one.
    (The standard has no ``decimals``.) Keeps the shape and dtype. Raises `DtypeError` for bool.
    """
    is_weak = x.weak
    x = unary("round", x, SIGNED)
    places = operator.index(decimals)
    # Scaled values stay weak in JAX if they are scalars.
    is_weak = is_weak and (not places or not x.shape or dtype_kind(x.dtype) in "iu")
    return with_weakness(_round_to(x, places), is_weak)


def _round_to(x: Tracer, places: int) -> Tracer:
    kind = dtype_kind(x.dtype)
    if kind in "iu":
        if places < 0:
            raise Unimplemented(
                f"round to {places} places of an array of {x.dtype.name}: integers can be rounded "
                "to 0 or more decimal places only; astype converts"
            )
        return x
    if places > math.log10(finfo(x.dtype).max):
        return x
    if kind == "c":
        parts = [_round_places(emit(part, x), places) for part in (hlo.real, hlo.imag)]
        return emit(hlo.complex, *parts)
    return _round_places(x, places)


def _round_places(x: Tracer, places: int) -> Tracer:
    if not places:
        return emit(hlo.round_nearest_even, x)
    wide = convert(x, np.float32) if itemsize_bits(x.dtype) < 32 else x
    factor = full(x.shape, 10.0**places, wide.dtype)
    whole = emit(hlo.round_nearest_even, emit(hlo.multiply, wide, factor))
    return convert(emit(hlo.divide, whole, factor), x.dtype)
