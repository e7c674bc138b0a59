"""Operand preparation of elementwise functions: dtype checks, promotion, broadcasting.

The dtypes that a function accepts and computes in follow from its kinds, by jax.numpy's rule
(`compute_dtype`).
"""

from __future__ import annotations

from functools import cache

import numpy as np

from plugrt.errors import NotAnArray, ShapeError
from plugrt.tracing import argument_checks
from plugrt.tracing.emit import convert, convert_to
from plugrt.tracing.promotion import (
    BOOL,
    default_complex,
    default_float,
    default_int,
    dtype_kind,
    inexact,
    result_dtype,
)
from plugrt.tracing.tracer import Tracer

Dtype = np.dtype[np.generic]

# The kinds of dtypes that functions compute in, as the letters of `dtype_kind`.
BOOLEAN = "b"
INTEGER = "iu"
INTEGER_OR_BOOLEAN = "biu"
REAL = "iuf"
REAL_OR_BOOLEAN = "biuf"
FLOATING = "fc"
REAL_FLOATING = "f"
NUMERIC = "iufc"
SIGNED = "iufc!"  # no bool, not even converted: jax.numpy refuses to subtract or negate it
ANY = "biufc"

_WORDS = {
    BOOLEAN: "bool",
    INTEGER: "integer dtypes",
    INTEGER_OR_BOOLEAN: "integer dtypes and bool",
    REAL: "real numeric dtypes (integers and floats)",
    REAL_OR_BOOLEAN: "real dtypes (bool, integers and floats)",
    FLOATING: "floating dtypes (real and complex); astype converts",
    REAL_FLOATING: "real floating dtypes; astype converts",
    NUMERIC: "numeric dtypes (not bool; astype converts)",
    SIGNED: "numeric dtypes (not bool; astype converts, logical_not and logical_xor take bool)",
}


def admit(function: str, argument: str, dtype: Dtype, kinds: str) -> None:
    """Raises `DtypeError` unless ``dtype`` is of one of ``kinds`` (letters of `dtype_kind`)."""
    argument_checks.check_dtype_kind(function, argument, dtype, kinds, _WORDS.get(kinds))


def compute_dtype(function: str, argument: str, dtype: Dtype, kinds: str) -> Dtype:
    """Returns the dtype in which a function for ``kinds`` computes with ``dtype``.

    As in jax.numpy a lower kind is converted to the function's lowest: bool to int32, bool and
    integers to floats (`inexact`). Functions of bool accept every dtype; nonzero values are true.
    Raises `DtypeError` for a higher kind.
    """
    kind = dtype_kind(dtype)
    if kind in kinds:
        return dtype
    if kinds == BOOLEAN:
        return BOOL
    if kind == "b" and kinds[0] == "i" and kinds != SIGNED:
        return np.dtype(np.int32)
    if kind in INTEGER_OR_BOOLEAN and kinds[0] == "f":
        return inexact(dtype)
    admit(function, argument, dtype, kinds)
    return dtype


def require_array(function: str, argument: str, x: object) -> Tracer:
    """Returns ``x`` if it is an array; `NotAnArray` for None and for containers of arrays."""
    if type(x) is not Tracer:
        raise NotAnArray(
            f"{function} got {argument} of type {type(x).__qualname__}; it takes arrays and "
            "scalars (array_api.asarray makes an array of nested lists)"
        )
    return x


def default_dtype(dtype: Dtype, kinds: str = ANY) -> Dtype:
    """Returns the default dtype of the kind of ``dtype``, as of Python scalars without arrays.

    Integers become floats if ``kinds`` has only floats.
    """
    kind = dtype_kind(dtype)
    if kind == "b":
        return dtype
    if kind in "iu" and kinds[0] == "f":
        return default_float()
    return {"f": default_float, "c": default_complex}.get(kind, default_int)()


def unary(function: str, x: Tracer, kinds: str = ANY) -> Tracer:
    """Returns the operand of a function of one array in its compute dtype, not weak."""
    weak = require_array(function, "x", x).weak
    if not weak and dtype_kind(x.dtype) in kinds:
        return x
    dtype = compute_dtype(function, "x", default_dtype(x.dtype, kinds) if weak else x.dtype, kinds)
    return convert(x, dtype)


def binary(
    function: str, x1: Tracer, x2: Tracer, kinds: str = ANY, names: tuple[str, str] = ("x1", "x2")
) -> tuple[Tracer, Tracer]:
    """Returns two operands, checked, in their common dtype and their common shape.

    Raises `DtypeError` for dtypes outside of ``kinds`` or without a common dtype, `ShapeError` for
    shapes that do not broadcast.
    """
    usual = (
        type(x1) is type(x2) is Tracer
        and x1.dtype == x2.dtype
        and not (x1.weak and x2.weak)
        and dtype_kind(x1.dtype) in kinds
    )
    dtype = x1.dtype if usual else common_dtype(function, (x1, x2), kinds, names)
    if x1.shape == x2.shape or not x2.shape:
        shape = x1.shape
    else:
        shape = common_shape(function, (x1, x2), names)
    return convert_to(x1, dtype, shape), convert_to(x2, dtype, shape)


def common_dtype(
    function: str, operands: tuple[Tracer, ...], kinds: str, names: tuple[str, ...]
) -> Dtype:
    """Returns the common dtype of operands; raises `DtypeError` for one outside of ``kinds``."""
    strong = [
        x
        for x, name in zip(operands, names, strict=True)
        if not require_array(function, name, x).weak
    ]
    if strong and all(x.dtype == strong[0].dtype for x in operands):
        dtype = strong[0].dtype
    else:
        dtype = result_dtype([(x.dtype, x.weak) for x in operands])
        dtype = dtype if strong else default_dtype(dtype, kinds)
    if dtype_kind(dtype) in kinds:
        return dtype
    # The message names the operand of that kind, or both: uint64 with int64 makes floats.
    kind, every = dtype_kind(dtype), zip(operands, names, strict=True)
    culprit = next((name for x, name in every if dtype_kind(x.dtype) == kind), " with ".join(names))
    return compute_dtype(function, culprit, dtype, kinds)


def common_shape(
    function: str, operands: tuple[Tracer, ...], names: tuple[str, ...]
) -> tuple[int, ...]:
    """Returns the shape to which operands broadcast; `ShapeError` names those that do not match."""
    shape = broadcast_shapes(tuple(x.shape for x in operands))
    if shape is None:
        found = ", ".join(f"{n} of shape {x.shape}" for n, x in zip(names, operands, strict=True))
        raise ShapeError(
            f"{function} got {found}, which cannot be broadcast: aligned at the last dimension, "
            "each must be equal or 1"
        )
    return shape


@cache
def broadcast_shapes(shapes: tuple[tuple[int, ...], ...]) -> tuple[int, ...] | None:
    """Returns the common shape by NumPy's rule, or None if the shapes do not broadcast."""
    ndim = max(map(len, shapes), default=0)
    result = []
    for sizes in zip(*[(1,) * (ndim - len(s)) + s for s in shapes], strict=True):
        found = {n for n in sizes if n != 1}
        if len(found) > 1:
            return None
        result.append(found.pop() if found else 1)
    return tuple(result)
