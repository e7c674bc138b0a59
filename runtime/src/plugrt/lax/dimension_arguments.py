"""Parses ``lax`` arguments that are dimensions, a number for each, or starts of slices."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from plugrt.errors import ArgumentError, ArgumentTypeError, AxisError, DtypeError, ShapeError
from plugrt.interface import TensorType
from plugrt.settings.declarations import config
from plugrt.tracing.argument_checks import normalize_axes, normalize_axis
from plugrt.tracing.captures import as_tracer
from plugrt.tracing.emit import compare, constant, convert, emit, hlo, reshape, slice_
from plugrt.tracing.emit import select as emit_select
from plugrt.tracing.promotion import dtype_kind
from plugrt.tracing.tracer import Tracer


def normalize_dimension(function: str, dimension: int, ndim: int) -> int:
    """Returns a dimension counted from 0; negative ones count from the end."""
    return normalize_axis(f"lax.{function}", dimension, ndim, "a dimension")


def normalize_dimensions(
    function: str, dimensions: Sequence[int] | int, ndim: int
) -> tuple[int, ...]:
    """Returns dimensions counted from 0, each at most once; None means no dimensions."""
    if dimensions is None:
        raise AxisError(f"lax.{function} takes dimensions, one integer or several; found None")
    return normalize_axes(f"lax.{function}", dimensions, ndim, "a dimension")


def per_dimension(
    function: str, name: str, values: Sequence[Any] | None, ndim: int, default: int = 1
) -> list[int]:
    """Returns one integer for each dimension; ``default`` for all if none are given."""
    if values is None:
        return [default] * ndim
    try:
        listed = [operator.index(v) for v in values]
    except TypeError as error:
        raise ArgumentTypeError(
            f"{name} of lax.{function} is {values!r}; it takes a sequence of integers"
        ) from error
    if len(listed) != ndim:
        raise ArgumentError(
            f"{name} of lax.{function} needs {ndim} numbers, one for each dimension; got {listed}"
        )
    return listed


def read_start_indices(
    function: str, operand: Tracer, indices: Any, allow_negative: bool | Sequence[bool]
) -> list[Tracer]:
    """Returns the start indices as scalars of one dtype, counted from 0."""
    ndim = operand.ndim
    from_end = [allow_negative] * ndim if isinstance(allow_negative, bool) else allow_negative
    if len(from_end) != ndim:
        raise ArgumentError(
            f"allow_negative_indices of lax.{function} is one for all or one for each of {ndim} "
            f"dimensions; found {len(from_end)}"
        )
    if isinstance(indices, Tracer):
        if indices.ndim != 1:
            raise ShapeError(
                f"start_indices of lax.{function} are scalars or an array of one dimension; found "
                f"shape {indices.shape}"
            )
        count = indices.shape[0]
        scalars = [reshape(slice_(indices, [i], [i + 1], [1]), ()) for i in range(count)]
    else:
        scalars = [as_tracer(i, f"a start index of {function}") for i in indices]
    if len(scalars) != operand.ndim:
        raise ShapeError(
            f"lax.{function} needs {operand.ndim} start indices, one for each dimension; found "
            f"{len(scalars)}"
        )
    for s in scalars:
        if s.shape or dtype_kind(s.dtype) not in "iu":
            raise DtypeError(
                f"start indices of lax.{function} are integer scalars; found "
                f"{TensorType(s.shape, s.dtype)}"
            )
    return [
        _wrap_negative(s, n) if may else s
        for s, n, may in zip(_unify_dtypes(function, scalars), operand.shape, from_end, strict=True)
    ]


def _unify_dtypes(function: str, scalars: list[Tracer]) -> list[Tracer]:
    # Without enable_x64 64-bit data keep their width and may be mixed with 32-bit ones; other
    # mixtures raise, as in JAX.
    narrow = {"int64": "int32", "uint64": "uint32"} if config.enable_x64 is not True else {}
    found = {narrow.get(s.dtype.name, s.dtype.name) for s in scalars if not s.weak}
    if len(found) > 1:
        raise DtypeError(
            f"start indices of lax.{function} are of one dtype (Python integers go with any); "
            f"found {', '.join(sorted(found))}"
        )
    wide = any(s.dtype.itemsize == 8 for s in scalars)
    unsigned = {s.dtype for s in scalars} == {np.dtype(np.uint32)}
    dtype = np.dtype(np.int64 if wide else np.uint32 if unsigned else np.int32)
    return [convert(s, dtype) for s in scalars]


def _wrap_negative(index: Tracer, length: int) -> Tracer:
    if dtype_kind(index.dtype) == "u":
        return index
    moved = emit(hlo.add, index, constant(length, index.dtype))
    return emit_select(compare(index, constant(0, index.dtype), "LT"), moved, index)
