"""Dtype promotion: the array API standard's tables, and JAX's rules beyond them.

Within a kind the standard's tables apply. Where the standard leaves the result open, JAX's rules
apply: an integer array and a floating one give the floating dtype, bfloat16 with float16 gives
float32, uint64 with a signed integer gives float64; floats of 8 bits and integers of 4 combine only
with Python scalars, bool and (for the floats) integers. Python scalars never widen: they get the
array's dtype, or the default dtype of their kind where the array's kind is lower.

64-bit data keep their width whatever the setting: where integers become floats, 64-bit integers
become float64, and all others float32 (`inexact`), as in JAX with ``JAX_ENABLE_X64=1``. So a result
of 64-bit data has one dtype under both settings. One thing differs from JAX while the setting is
unset: uint32 with a signed integer gives int64, as in the standard; JAX, which has no 64-bit dtypes
then, gives int32.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from plugrt.errors import DtypeError, IntegerOverflow
from plugrt.execution.arrays.casting import (
    dtype_kind as dtype_kind,  # for users of this module
)
from plugrt.execution.arrays.casting import kind_rank as kind_rank  # likewise
from plugrt.settings.declarations import config

if TYPE_CHECKING:
    from plugrt.tracing.tracer import Tracer


Dtype = np.dtype[Any]
BOOL = np.dtype(np.bool_)


def default_float() -> Dtype:
    """float32, or float64 where ``config.enable_x64`` is True."""
    return np.dtype(np.float64 if config.enable_x64 is True else np.float32)


def default_int() -> Dtype:
    """int32, or int64 where ``config.enable_x64`` is True."""
    return np.dtype(np.int64 if config.enable_x64 is True else np.int32)


def default_unsigned() -> Dtype:
    """uint32, or uint64 where ``config.enable_x64`` is True."""
    return np.dtype(np.uint64 if config.enable_x64 is True else np.uint32)


def default_complex() -> Dtype:
    """complex64, or complex128 where ``config.enable_x64`` is True."""
    return np.dtype(np.complex128 if config.enable_x64 is True else np.complex64)


def itemsize_bits(dtype: Dtype) -> int:
    """Returns the bits of an element, also for sub-byte types."""
    if dtype_kind(dtype) in "iu":
        digits = dtype.name.lstrip("uint")
        return int(digits)
    if dtype.kind == "V":
        return int(ml_dtypes.finfo(dtype).bits)
    return dtype.itemsize * 8


@cache
def inexact(dtype: Dtype) -> Dtype:
    """Returns the floating dtype that bool and integers become; floats and complex stay."""
    kind = dtype_kind(dtype)
    if kind in "fc":
        return dtype
    return np.dtype(np.float64 if kind in "iu" and itemsize_bits(dtype) == 64 else np.float32)


def _is_narrow(dtype: Dtype) -> bool:
    """Whether it is a dtype that JAX promotes to no other: integers below 8 bits, 8-bit floats."""
    return dtype.kind != "b" and itemsize_bits(dtype) <= (8 if dtype_kind(dtype) == "f" else 4)


def promote_dtypes(a: Dtype, b: Dtype) -> Dtype:
    """Returns the common dtype to which arrays of two dtypes are converted. Symmetric."""
    if a == b:
        return a
    return _promote(a, b, config.enable_x64 is not False)


@cache
def _promote(a: Dtype, b: Dtype, wide: bool) -> Dtype:
    ka, kb = dtype_kind(a), dtype_kind(b)
    if ka == "b":
        return b
    if kb == "b":
        return a
    integers = (ka in "iu", kb in "iu")
    for narrow, other in ((a, kb), (b, ka)):
        if _is_narrow(narrow) and not (dtype_kind(narrow) == "f" and other in "iu"):
            raise _make_promotion_error(a.name, b.name)
    if all(integers):
        return _promote_integers(a, b, wide)
    if any(integers):
        return b if integers[0] else a
    if "c" in (ka, kb):
        double = any(d.name in ("float64", "complex128") for d in (a, b))
        return np.dtype(np.complex128 if double else np.complex64)
    if "bfloat16" in (a.name, b.name):
        return np.dtype(np.float64 if "float64" in (a.name, b.name) else np.float32)
    return np.promote_types(a, b)


def _make_promotion_error(a: str, b: str) -> DtypeError:
    return DtypeError(
        f"{a} and {b} have no implicit promotion; convert one with array_api.astype(x, dtype)"
    )


def _promote_integers(a: Dtype, b: Dtype, wide: bool) -> Dtype:
    bits = {"i": 0, "u": 0}
    for d in (a, b):
        bits[dtype_kind(d)] = max(bits[dtype_kind(d)], itemsize_bits(d))
    if not bits["u"] or not bits["i"]:
        return a if itemsize_bits(a) >= itemsize_bits(b) else b
    need = max(bits["i"], 2 * bits["u"])
    if need > 64:
        return np.dtype(np.float64 if wide else np.float32)
    return np.dtype(f"int{need if wide else min(need, 32)}")


def scalar_result(array: Dtype, scalar_kind: str) -> Dtype:
    """Returns the dtype of an array that meets a Python scalar of kind ``b i f c``."""
    kind = dtype_kind(array)
    if scalar_kind == "b" or (scalar_kind == "i" and kind != "b"):
        return array
    if scalar_kind == "i":
        return default_int()
    if kind == "c" or (scalar_kind == "f" and kind == "f"):
        return array
    if kind != "b" and _is_narrow(array):
        raise _make_promotion_error(
            array.name, f"a Python {'float' if scalar_kind == 'f' else 'complex'}"
        )
    double = inexact(array).itemsize == 8 or (kind != "f" and default_float().itemsize == 8)
    if scalar_kind == "f":
        return np.dtype(np.float64 if double else np.float32)
    return np.dtype(np.complex128 if double else np.complex64)


def result_dtype(operands: Sequence[tuple[Dtype, bool]]) -> Dtype:
    """Returns the common dtype of operands, each given as (dtype, is weak)."""
    strong = [dtype for dtype, weak in operands if not weak]
    weak = [dtype for dtype, is_weak in operands if is_weak]
    if len(strong) == 1 and not weak:
        return strong[0]
    if strong:
        # The highest kind first: beside a float16, uint64 and int8 do not make a float64.
        if len(strong) > 1:
            strong.sort(key=kind_rank, reverse=True)
        result, *others = strong
        for dtype in others:
            result = promote_dtypes(result, dtype)
        for dtype in weak:
            result = scalar_result(result, dtype_kind(dtype).replace("u", "i"))
        return result
    result = weak[0]
    for dtype in weak[1:]:
        result = promote_dtypes(result, dtype)
    return result


def is_weak_result(operands: Sequence[tuple[Dtype, bool]]) -> bool:
    """Whether the dtype of `result_dtype` is weak: it yields to the dtype of arrays, as in JAX.

    It is weak if the weak operands have a higher kind than all others: ``int8 * 0.5`` is as weak as
    0.5. (A complex scalar beside floats is not: the floats determine its width.) The float that
    results from uint64 and a signed integer is weak, too. Booleans, also Python's, are never weak.
    """
    yielding = [dtype for dtype, is_weak in operands if is_weak]
    strong = [dtype for dtype, is_weak in operands if not is_weak]
    weak = max(map(kind_rank, yielding), default=0)
    highest = max(map(kind_rank, strong), default=0)
    if weak > highest:
        return (weak, highest) != (3, 2)
    if highest != 1 or weak > 1:
        return False
    return dtype_kind(result_dtype([(dtype, False) for dtype in strong])) == "f"


def check_fits(x: Tracer, dtype: np.dtype[Any]) -> None:
    """Raises `IntegerOverflow` where a Python integer loses digits in an integer dtype.

    As in JAX those within the default integer dtype wrap around (``uint8(1) - 1 - 1``); larger
    ones are refused, unless the dtype holds them. Of a parameter the value is not known.
    """
    if config.enable_x64 is True or x.dtype.itemsize < 8 or dtype.itemsize == 8:
        return
    limits = np.iinfo(dtype)
    fits = x.scalar is not None and limits.min <= int(x.scalar) <= limits.max
    if not fits:
        what = "an integer" if x.scalar is None else f"the Python integer {int(x.scalar)}"
        raise IntegerOverflow(
            f"{what} that does not fit {default_int().name} meets an array of dtype {dtype.name}; "
            "convert the array (array_api.astype) or pass the integer as an array of its dtype"
        )
