"""Operand checks of ``lax``: equal dtypes and shapes; Python scalars get the arrays' dtype."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from plugrt.errors import DtypeError, ShapeError
from plugrt.tracing import argument_checks
from plugrt.tracing.emit import broadcast_in_dim, convert, strong
from plugrt.tracing.promotion import dtype_kind, result_dtype, scalar_result
from plugrt.tracing.tracer import Tracer


def check_dtype_kind(function: str, argument: str, dtype: np.dtype[Any], kinds: str) -> None:
    """Raises `DtypeError` unless the dtype is of one of the ``kinds`` (letters of ``biufc``)."""
    argument_checks.check_dtype_kind(f"lax.{function}", f"argument {argument!r}", dtype, kinds)


def same_dtype(function: str, names: Sequence[str], values: Sequence[Tracer]) -> list[Tracer]:
    """Returns the values in one dtype, which arrays must share; Python scalars get it.

    Raises `DtypeError` with the names and dtypes if they do not.
    """
    arrays = {x.dtype for x in values if not x.weak}
    dtype = arrays.pop() if arrays else result_dtype([(x.dtype, True) for x in values])
    for x in values:
        if arrays or (x.weak and scalar_result(dtype, scalar_kind(x)) != dtype):
            listed = ", ".join(
                f"{name} {'a Python ' if v.weak else ''}{v.dtype.name}"
                for name, v in zip(names, values, strict=True)
            )
            raise DtypeError(
                f"lax.{function} takes arrays of one dtype; found {listed}. Convert one with "
                "lax.convert_element_type, or use the function of plugrt.array_api, which promotes"
            )
    return [convert(x, dtype) if x.dtype != dtype else strong(x) for x in values]


def scalar_kind(x: Tracer) -> str:
    """Returns the kind of a Python scalar: ``b i f c``."""
    return dtype_kind(x.dtype).replace("u", "i")


def same_shape(function: str, names: Sequence[str], values: Sequence[Tracer]) -> list[Tracer]:
    """Returns the values in one shape: scalars and dimensions of 1 are repeated.

    Raises `ShapeError` with the names and shapes if the others differ, or differ in rank.
    """
    shapes = [x.shape for x in values if x.shape]
    if all(x.shape == values[0].shape for x in values):
        return list(values)
    target = list(shapes[0])
    for shape in shapes:
        fits = len(shape) == len(target)
        if not fits or any(m != n and 1 not in (m, n) for m, n in zip(shape, target, strict=True)):
            listed = ", ".join(f"{name} {x.shape}" for name, x in zip(names, values, strict=True))
            raise ShapeError(
                f"lax.{function} takes arrays of one shape (or scalars); found {listed}. Use "
                "lax.broadcast_in_dim, or the function of plugrt.array_api, which broadcasts"
            )
        target = [n if m == 1 else m for m, n in zip(shape, target, strict=True)]
    return [expand_to_shape(x, tuple(target)) for x in values]


def expand_to_shape(x: Tracer, shape: tuple[int, ...]) -> Tracer:
    """Returns a scalar, or an array of the same rank with dimensions of 1, in a larger shape."""
    if x.shape == shape:
        return x
    return broadcast_in_dim(x, shape, range(len(shape)) if x.shape else ())
