from __future__ import annotations

from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest

from plugrt import lax
from plugrt.errors import DtypeError, NotAnArray, ShapeError
from support.jax_oracle import same

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = np.array([-np.inf, -2.5, -0.5, -0.0, 0.0, 0.25, 0.5, 1.5, 2.0, np.inf, np.nan])
INTS = np.array([-128, -3, -1, 0, 1, 2, 5, 127])
COMPLEX = np.array([0.5 + 0.25j, -1 - 2j, 0j, 3j, 1 + 0j])


def values(kind: str, dtype: Any) -> np.ndarray[Any, Any]:
    if kind == "f":
        return FLOATS.astype(dtype)
    if kind == "c":
        return COMPLEX.astype(dtype)
    if kind == "b":
        return np.array([True, False])
    return INTS.astype(dtype) if kind == "i" else np.array([0, 1, 2, 5, 255]).astype(dtype)


DTYPES = {
    "f": (np.float32, np.float16, BFLOAT16),
    "i": (np.int32, np.int8),
    "u": (np.uint8,),
    "c": (np.complex64,),
    "b": (np.bool_,),
}
UNARY = {
    "abs": "ifc", "neg": "iufc", "sign": "iufc", "floor": "f", "ceil": "f", "round": "f",
    "is_finite": "f", "exp": "fc", "exp2": "f", "expm1": "f", "log": "fc", "log1p": "f",
    "sqrt": "f", "rsqrt": "f", "cbrt": "f", "logistic": "f", "sin": "fc", "cos": "f", "tan": "f",
    "sinh": "f", "cosh": "f", "tanh": "f", "asin": "f", "acos": "f", "atan": "f", "asinh": "f",
    "acosh": "f", "atanh": "f", "erf": "f", "erfc": "f", "erf_inv": "f", "lgamma": "f",
    "digamma": "f", "bessel_i1e": "f", "bitwise_not": "biu", "population_count": "iu",
    "clz": "iu", "real": "c", "imag": "c", "conj": "c", "square": "iuf", "reciprocal": "f",
}  # fmt: skip
TOLERANCE = {"float32": 2e-6, "float16": 2e-3, "bfloat16": 2e-2, "complex64": 2e-6}


@pytest.mark.parametrize("name", UNARY)
def test_unary_functions_match_jax_for_every_kind(name: str) -> None:
    for kind in UNARY[name]:
        for dtype in DTYPES[kind] if name in ("exp", "neg", "erf") else DTYPES[kind][:1]:
            x = values(kind, dtype)
            expected = getattr(jax.lax, name)(x)
            tolerance = TOLERANCE.get(np.dtype(dtype).name, 0)
            same(getattr(lax, name)(x), expected, rtol=tolerance, atol=tolerance / 10)


@pytest.mark.parametrize("name", sorted(UNARY))
def test_unary_functions_name_the_dtype_they_do_not_take(name: str) -> None:
    refused = next(k for k in "bcfiu" if k not in UNARY[name] and (name, k) not in ALSO)
    dtype = np.dtype(DTYPES[refused][0])
    with pytest.raises(DtypeError, match=f"lax.{name} got argument .* of dtype {dtype}"):
        getattr(lax, name)(values(refused, DTYPES[refused][0]))


ALSO = {
    (n, "c") for n in ("exp2", "expm1", "log1p", "sqrt", "rsqrt", "logistic", "cos", "tan", "sinh",
    "cosh", "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "square", "reciprocal")
} | {("conj", "f")}  # fmt: skip
"""Kinds of dtypes that are accepted as well, and not compared here."""

BINARY = {
    "add": "iufc", "sub": "iufc", "mul": "iufc", "div": "fc", "rem": "f", "max": "biuf",
    "min": "biuf", "atan2": "f", "nextafter": "f", "complex": "f", "bitwise_and": "biu",
    "bitwise_or": "biu", "bitwise_xor": "biu", "eq": "biufc", "ne": "biufc", "lt": "biuf",
    "le": "biuf", "gt": "biuf", "ge": "biuf", "pow": "f",
}  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
def test_binary_functions_match_jax_for_every_kind(name: str) -> None:
    for kind in BINARY[name]:
        dtype = DTYPES[kind][0]
        x = values(kind, dtype)
        y = np.roll(x, 1)
        tolerance = TOLERANCE.get(np.dtype(dtype).name, 0)
        same(getattr(lax, name)(x, y), getattr(jax.lax, name)(x, y), rtol=tolerance)


@pytest.mark.parametrize("name", ["div", "rem"])
def test_integer_division_truncates_as_jax_does(name: str) -> None:
    x = np.array([7, -7, 7, -7], np.int32)
    y = np.array([2, 2, -2, -2], np.int32)
    same(getattr(lax, name)(x, y), getattr(jax.lax, name)(x, y))


@pytest.mark.parametrize("power", [0, 1, 2, 3, 7, -2])
def test_integer_pow(power: int) -> None:
    x = np.array([0.5, -2.0, 3.0], np.float32)
    same(lax.integer_pow(x, power), jax.lax.integer_pow(x, power), rtol=1e-6)


def test_integer_pow_of_integers_takes_no_negative_power() -> None:
    assert lax.integer_pow(np.int32(3), 4).item() == 81
    with pytest.raises(DtypeError, match="integer_pow"):
        lax.integer_pow(np.int32(3), -1)


def test_pow_takes_integer_exponents() -> None:
    x = np.array([0.5, 2.0], np.float32)
    same(lax.pow(x, np.array([2, -1], np.int32)), np.array([0.25, 0.5], np.float32))


def test_dtypes_that_differ_are_refused_by_name() -> None:
    with pytest.raises(
        DtypeError, match=r"lax.add takes arrays of one dtype; found x float32, y i"
    ):
        lax.add(np.ones(3, np.float32), np.ones(3, np.int32))
    with pytest.raises(DtypeError, match=r"x int32, y a Python float32"):
        lax.add(np.ones(3, np.int32), 1.5)


def test_shapes_that_differ_are_refused_by_name() -> None:
    with pytest.raises(ShapeError, match=r"x \(3,\), y \(2, 3\)"):
        lax.add(np.ones(3), np.ones((2, 3)))
    with pytest.raises(ShapeError, match=r"x \(3,\), y \(4,\)"):
        lax.lt(np.ones(3), np.ones(4))


def test_a_text_is_refused_as_an_array() -> None:
    with pytest.raises(NotAnArray, match="argument 'x' of exp"):
        lax.exp("one")


def test_select_and_select_n_match_jax() -> None:
    x, y, z = (np.arange(3, dtype=np.float32) + 10 * i for i in range(3))
    pred = np.array([True, False, True])
    which = np.array([2, 0, 1], np.int32)
    same(lax.select(pred, x, y), jax.lax.select(pred, x, y))
    same(lax.select(True, x, y), x)
    same(lax.select_n(which, x, y, z), jax.lax.select_n(which, x, y, z))
    same(lax.select_n(pred, x, y), jax.lax.select_n(pred, x, y))
    same(lax.select_n(np.int32(2), x, y, z), z)


def test_select_refuses_what_does_not_fit() -> None:
    x = np.ones(3, np.float32)
    with pytest.raises(DtypeError, match="pred"):
        lax.select(np.ones(3, np.int32), x, x)
    with pytest.raises(ShapeError, match=r"chosen by shape \(2,\)"):
        lax.select(np.ones(2, bool), x, x)
    with pytest.raises(DtypeError, match="boolean or int32"):
        lax.select_n(np.ones(3, np.int8), x, x)


def test_clamp_matches_jax() -> None:
    x = FLOATS.astype(np.float32)
    same(lax.clamp(-1.0, x, 1.0), jax.lax.clamp(-1.0, x, 1.0))
    n = INTS.astype(np.int32)
    same(lax.clamp(n - 1, n, n - 1), jax.lax.clamp(n - 1, n, n - 1))
    with pytest.raises(ShapeError, match=r"min of lax\.clamp"):
        lax.clamp(np.zeros(2, np.float32), x, np.float32(1))


@pytest.mark.parametrize(
    ("dtype", "shape", "to"),
    [
        (np.float32, (2,), np.int32),
        (np.uint32, (2,), np.uint8),
        (np.uint8, (3, 4), np.int32),
        (BFLOAT16, (2,), np.uint16),
        (np.float32, (2, 3), np.float32),
    ],
)
def test_bitcast_convert_type_matches_jax(dtype: Any, shape: tuple[int, ...], to: Any) -> None:
    x = np.arange(np.prod(shape)).astype(dtype).reshape(shape)
    same(lax.bitcast_convert_type(x, to), jax.lax.bitcast_convert_type(x, to))


def test_bitcast_convert_type_refuses_shapes_and_booleans() -> None:
    with pytest.raises(ShapeError, match="4 uint8 in the last dimension"):
        lax.bitcast_convert_type(np.zeros(3, np.uint8), np.int32)
    with pytest.raises(DtypeError, match="booleans"):
        lax.bitcast_convert_type(np.zeros(3, bool), np.uint8)


def test_convert_element_type_and_reduce_precision_match_jax() -> None:
    x = np.array([1.75, -2.5, 300.1], np.float32)
    for to in (np.int8, np.float16, float, int, np.bool_):
        same(lax.convert_element_type(x[:2], to), jax.lax.convert_element_type(x[:2], to))
    same(lax.convert_element_type(np.array([1 + 2j]), np.float32), np.float32([1]))
    same(lax.reduce_precision(x, 5, 3), jax.lax.reduce_precision(x, 5, 3))


@pytest.mark.parametrize("name", ["shift_left", "shift_right_logical", "shift_right_arithmetic"])
def test_shifts_match_jax(name: str) -> None:
    x = INTS.astype(np.int32)
    y = np.arange(len(x), dtype=np.int32)
    same(getattr(lax, name)(x, y), getattr(jax.lax, name)(x, y))
