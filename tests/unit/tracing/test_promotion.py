"""The dtypes that result when arrays and Python scalars meet."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from plugrt import config
from plugrt.errors import DtypeError
from plugrt.tracing.promotion import promote_dtypes, result_dtype, scalar_result

NAMES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "float32", "float64", "complex64", "complex128",
]  # fmt: skip
FEW = [*NAMES, "bfloat16", "float8_e4m3fn", "int4", "uint4"]


def dtype(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name, name))


SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
MIXED = {
    ("int8", "uint8"): "int16", ("int8", "uint16"): "int32", ("int8", "uint32"): "int64",
    ("int16", "uint8"): "int16", ("int16", "uint16"): "int32", ("int16", "uint32"): "int64",
    ("int32", "uint8"): "int32", ("int32", "uint16"): "int32", ("int32", "uint32"): "int64",
    ("int64", "uint8"): "int64", ("int64", "uint16"): "int64", ("int64", "uint32"): "int64",
}  # fmt: skip
"""The standard's table of signed with unsigned integers."""


@pytest.mark.parametrize(("a", "b"), [*itertools.product(FEW, FEW)])
def test_promotion_is_symmetric(a: str, b: str) -> None:
    try:
        result = promote_dtypes(dtype(a), dtype(b))
    except DtypeError:
        with pytest.raises(DtypeError):
            promote_dtypes(dtype(b), dtype(a))
        return
    assert promote_dtypes(dtype(b), dtype(a)) == result
    assert promote_dtypes(result, dtype(a)) == result


def test_within_a_kind_the_wider_wins() -> None:
    floats = ["float32", "float64"]
    for names in (SIGNED, UNSIGNED, floats, ["complex64", "complex128"]):
        for i, j in itertools.product(range(len(names)), repeat=2):
            assert promote_dtypes(dtype(names[i]), dtype(names[j])).name == names[max(i, j)]


@pytest.mark.parametrize(("pair", "result"), [*MIXED.items()])
def test_signed_and_unsigned(pair: tuple[str, str], result: str) -> None:
    assert promote_dtypes(dtype(pair[0]), dtype(pair[1])).name == result


@pytest.mark.parametrize(
    ("a", "b", "result"),
    [
        ("int64", "uint64", "float64"), ("int32", "float16", "float16"),
        ("uint8", "bfloat16", "bfloat16"), ("bfloat16", "float16", "float32"),
        ("bfloat16", "float32", "float32"), ("float16", "complex64", "complex64"),
        ("float64", "complex64", "complex128"), ("bool", "int8", "int8"),
        ("bool", "float8_e4m3fn", "float8_e4m3fn"), ("int64", "complex64", "complex64"),
    ],
)  # fmt: skip
def test_beyond_the_standard_as_jax(a: str, b: str, result: str) -> None:
    assert promote_dtypes(dtype(a), dtype(b)).name == result


def test_no_promotion_between_float8_types() -> None:
    with pytest.raises(DtypeError, match=r"float8_e4m3fn and float8_e5m2.*astype"):
        promote_dtypes(dtype("float8_e4m3fn"), dtype("float8_e5m2"))


@pytest.mark.parametrize(
    ("array", "kind", "result"),
    [
        ("int8", "i", "int8"), ("int8", "f", "float32"), ("int8", "c", "complex64"),
        ("bool", "i", "int32"), ("bool", "b", "bool"), ("bool", "f", "float32"),
        ("float16", "f", "float16"), ("float16", "i", "float16"), ("float16", "c", "complex64"),
        ("float64", "c", "complex128"), ("bfloat16", "f", "bfloat16"),
        ("complex64", "f", "complex64"), ("uint8", "i", "uint8"),
    ],
)  # fmt: skip
def test_python_scalars_do_not_widen(array: str, kind: str, result: str) -> None:
    assert scalar_result(dtype(array), kind).name == result


def test_scalars_among_themselves_and_with_arrays() -> None:
    f32, i32, weak = np.dtype(np.float32), np.dtype(np.int32), True
    assert result_dtype([(i32, weak), (f32, weak)]) == f32
    assert result_dtype([(f32, weak), (np.dtype(np.float16), False)]).name == "float16"
    assert result_dtype([(f32, weak), (np.dtype(np.int8), False), (i32, False)]) == f32


def test_the_setting_changes_what_scalars_become_and_nothing_of_64_bit_data() -> None:
    with config.override(enable_x64=True):
        assert scalar_result(dtype("int8"), "f").name == "float64"
    assert scalar_result(dtype("int8"), "f").name == "float32"
    for setting in (True, None):
        with config.override(enable_x64=setting):
            assert promote_dtypes(dtype("int64"), dtype("uint64")).name == "float64"
            assert scalar_result(dtype("uint64"), "f").name == "float64"
            assert scalar_result(dtype("int64"), "c").name == "complex128"


def test_nothing_becomes_64_bits_where_they_are_switched_off() -> None:
    with config.override(enable_x64=False):
        assert promote_dtypes(dtype("int32"), dtype("uint32")).name == "int32"
