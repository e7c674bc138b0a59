"""The names of the array API standard 2024.12, written down from the standard."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import plugrt.array_api as xp
from plugrt import Array
from plugrt.tracing.tracer import Tracer

STANDARD = {
    "array creation": """
        arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones
        ones_like tril triu zeros zeros_like""",
    "constants": "e inf nan newaxis pi",
    "data types": """
        bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64
        complex128""",
    "data type functions": "astype can_cast finfo iinfo isdtype result_type",
    "elementwise": """
        abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift
        bitwise_invert bitwise_or bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh
        divide equal exp expm1 floor floor_divide greater greater_equal hypot imag isfinite isinf
        isnan less less_equal log log1p log2 log10 logaddexp logical_and logical_not logical_or
        logical_xor maximum minimum multiply negative nextafter not_equal positive pow real
        reciprocal remainder round sign signbit sin sinh square sqrt subtract tan tanh trunc""",
    "indexing": "take take_along_axis",
    "inspection": "__array_namespace_info__ __array_api_version__",
    "linear algebra": "matmul matrix_transpose tensordot vecdot",
    "manipulation": """
        broadcast_arrays broadcast_to concat expand_dims flip moveaxis permute_dims repeat reshape
        roll squeeze stack tile unstack""",
    "searching": "argmax argmin count_nonzero nonzero searchsorted where",
    "sets": "unique_all unique_counts unique_inverse unique_values",
    "sorting": "argsort sort",
    "statistics": "cumulative_prod cumulative_sum max mean min prod std sum var",
    "utility": "all any diff",
}
ATTRIBUTES = ["dtype", "device", "mT", "ndim", "shape", "size", "T"]
_METHODS = """
    __abs__ __add__ __and__ __array_namespace__ __bool__ __complex__ __dlpack__
    __dlpack_device__ __eq__ __float__ __floordiv__ __ge__ __getitem__ __gt__ __index__ __int__
    __invert__ __le__ __lshift__ __lt__ __matmul__ __mod__ __mul__ __ne__ __neg__ __or__ __pos__
    __pow__ __rshift__ __setitem__ __sub__ __truediv__ __xor__ to_device
    __radd__ __rsub__ __rmul__ __rtruediv__ __rfloordiv__ __rpow__ __rmod__ __rmatmul__ __rand__
    __ror__ __rxor__ __rlshift__ __rrshift__"""

SIGNATURES = {
    "arange": "(start, /, stop=None, step=1, *, dtype=None, device=None)",
    "asarray": "(obj, /, *, dtype=None, device=None, copy=None)",
    "astype": "(x, dtype, /, *, copy=True, device=None)",
    "clip": "(x, /, min=None, max=None)",
    "eye": "(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None)",
    "from_dlpack": "(x, /, *, device=None, copy=None)",
    "full": "(shape, fill_value, *, dtype=None, device=None)",
    "full_like": "(x, /, fill_value, *, dtype=None, device=None)",
    "linspace": "(start, stop, /, num, *, dtype=None, device=None, endpoint=True)",
    "meshgrid": "(*arrays, indexing='xy')",
    "tril": "(x, /, *, k=0)",
    "zeros": "(shape, *, dtype=None, device=None)",
    "zeros_like": "(x, /, *, dtype=None, device=None)",
    "can_cast": "(from_, to, /)",
    "isdtype": "(dtype, kind)",
    "result_type": "(*arrays_and_dtypes)",
    "add": "(x1, x2, /)",
    "abs": "(x, /)",
    "sum": "(x, /, *, axis=None, dtype=None, keepdims=False)",
    "std": "(x, /, *, axis=None, correction=0.0, keepdims=False)",
    "sort": "(x, /, *, axis=-1, descending=False, stable=True)",
    "concat": "(arrays, /, *, axis=0)",
    "reshape": "(x, /, shape, *, copy=None)",
}


@pytest.mark.parametrize("section", STANDARD)
def test_every_name_of_the_standard_is_there(section: str) -> None:
    names = STANDARD[section].split()
    assert [n for n in names if not hasattr(xp, n)] == []
    assert [n for n in names if n not in xp.__all__] == []


@pytest.mark.parametrize("cls", [Array, Tracer])
def test_every_attribute_and_method_of_arrays_is_there(cls: Any) -> None:
    assert [n for n in ATTRIBUTES + _METHODS.split() if not hasattr(cls, n)] == []
    assert cls.__hash__ is None


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures_are_the_standards(name: str) -> None:
    """Parameters that are positional in jax.numpy may be positional here; the standard allows it.

    The same applies to jax.numpy's additional parameters, ``out_sharding``, ``ddof`` and ``order``.
    ``start`` of ``arange`` may be a keyword, as in jax.numpy.
    """
    found = inspect.signature(getattr(xp, name))
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in found.parameters.values()]
    text = str(inspect.Signature(bare))
    if name == "arange":
        text = text.replace("(start, ", "(start, /, ")
    for further in (", out_sharding=None", ", ddof=None", ", order='C'"):
        text = text.replace(further, "")
    assert text.replace("*, ", "") == SIGNATURES[name].replace("*, ", "")


def test_version_and_exports() -> None:
    assert xp.__array_api_version__ == "2024.12"
    assert len(set(xp.__all__)) == len(xp.__all__)
    assert all(hasattr(xp, name) for name in xp.__all__)
    documented = [n for n in xp.__all__ if callable(getattr(xp, n))]
    assert [n for n in documented if not getattr(xp, n).__doc__] == []
