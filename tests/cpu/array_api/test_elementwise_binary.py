"""Elementwise functions of two arrays against NumPy, special values included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import plugrt.array_api as xp
from plugrt.errors import DtypeError, ShapeError
from support.numpy_oracle import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    dtype_of,
    identical,
    same,
    sample,
    traced,
)

ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide,
    "pow": np.power,
}  # fmt: skip
REAL: dict[str, Callable[..., Any]] = {
    "floor_divide": np.floor_divide, "remainder": np.remainder, "maximum": np.maximum,
    "minimum": np.minimum, "less": np.less, "less_equal": np.less_equal, "greater": np.greater,
    "greater_equal": np.greater_equal,
}  # fmt: skip
FLOATING: dict[str, Callable[..., Any]] = {
    "atan2": np.arctan2, "copysign": np.copysign, "hypot": np.hypot, "logaddexp": np.logaddexp,
}  # fmt: skip
EQUALITY: dict[str, Callable[..., Any]] = {"equal": np.equal, "not_equal": np.not_equal}
BITS: dict[str, Callable[..., Any]] = {
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
}  # fmt: skip
SHIFTS: dict[str, Callable[..., Any]] = {
    "bitwise_left_shift": np.left_shift, "bitwise_right_shift": np.right_shift,
}  # fmt: skip
NUMBERS = np.array([-np.inf, -2.5, -1, -0.0, 0, 0.5, 1, 2, np.inf, np.nan])

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def pairs(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Returns all pairs of the values."""
    a, b = np.meshgrid(values, values)
    return a.ravel().copy(), b.ravel().copy()


def of_each(function: Callable[..., Any], arrays: list[tuple[Any, Any]]) -> list[Any]:
    """Returns the results for several pairs, computed by one program."""
    flat = [x for pair in arrays for x in pair]
    body = lambda *xs: [function(*xs[i : i + 2]) for i in range(0, len(xs), 2)]  # noqa: E731
    result: list[Any] = traced(body)(*flat)
    return result


@pytest.mark.parametrize("name", [*ARITHMETIC, *REAL, *FLOATING, *EQUALITY])
def test_floats_with_special_values(name: str) -> None:
    oracle = {**ARITHMETIC, **REAL, **FLOATING, **EQUALITY}[name]
    arrays = [pairs(NUMBERS.astype(dtype_of(dtype))) for dtype in FLOATS]
    for (a, b), found in zip(arrays, of_each(getattr(xp, name), arrays), strict=True):
        wide = np.float64 if a.dtype == np.float64 else np.float32
        wanted = oracle(a.astype(wide), b.astype(wide))
        result = np.asarray(found)
        same(result, wanted if wanted.dtype == np.bool_ else wanted.astype(a.dtype))
        if name in ("copysign", "floor_divide", "remainder", "multiply", "divide", "atan2"):
            number = ~np.isnan(wanted)
            np.testing.assert_array_equal(np.signbit(result)[number], np.signbit(wanted)[number])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_nextafter(dtype: str) -> None:
    a, b = pairs(NUMBERS.astype(dtype))
    identical(xp.nextafter(a, b), np.nextafter(a, b))


def test_hypot_and_logaddexp_do_not_overflow() -> None:
    big, small = np.float32(1e30), np.float32(1e-30)
    same(xp.hypot(big, big), np.hypot(big, big))
    same(xp.hypot(small, small), np.hypot(small, small))
    same(xp.logaddexp(big, np.float32(0)), big)
    same(xp.logaddexp(np.float32(1000), np.float32(1000)), np.float32(1000 + np.log(2)))


@pytest.mark.parametrize("name", [*ARITHMETIC, *REAL, *EQUALITY, *BITS])
def test_integers_to_their_limits(name: str) -> None:
    oracle = {**ARITHMETIC, **REAL, **EQUALITY, **BITS}[name]
    arrays = []
    for dtype in INTEGERS:
        i = np.iinfo(dtype)
        a, b = pairs(np.unique(np.array([i.min, i.min // 2, 0, 1, 3, i.max], dtype)))
        # Results that overflow with a greater exponent depend on the backend.
        arrays.append((a, b & 63 if name == "pow" else b))
    for (a, b), result in zip(arrays, of_each(getattr(xp, name), arrays), strict=True):
        if name == "divide":
            wanted = "float64" if a.dtype.itemsize == 8 else "float32"
            same(result, oracle(a, b), dtype=wanted, tolerance=1e-6)
        else:
            identical(result, oracle(a, b))


@pytest.mark.parametrize("name", SHIFTS)
def test_shifts_by_any_number_of_bits(name: str) -> None:
    arrays = []
    for dtype in INTEGERS:
        i = np.iinfo(dtype)
        bits = np.array([[0], [1], [i.bits - 1], [i.bits], [min(100, i.max)]], dtype)
        arrays.append((np.array([i.min, i.max, 1, 5], dtype), bits))
    for (a, b), result in zip(arrays, of_each(getattr(xp, name), arrays), strict=True):
        identical(result, SHIFTS[name](a, b))


@pytest.mark.parametrize(
    ("base", "exponent", "wanted"),
    [(2, -1, 0), (1, -3, 1), (-1, -3, -1), (-1, -2, 1), (0, -1, 0), (0, 64, 0), (2, 64, 0),
     (-1, 65, -1), (1, 127, 1), (0, 0, 1)],
)  # fmt: skip
def test_powers_of_integers(base: int, exponent: int, wanted: int) -> None:
    for dtype in (np.int8, np.int32, np.int64):
        identical(xp.pow(dtype([base]), dtype([exponent])), dtype([wanted]))


@pytest.mark.parametrize("dtype", ["int4", "uint4"])
def test_four_bit_integers(dtype: str) -> None:
    low, high = (-8, 7) if dtype == "int4" else (0, 15)
    values = np.arange(low, high + 1)
    x = xp.asarray(values, dtype=dtype_of(dtype))
    squares = np.asarray(xp.multiply(x, x)).astype(np.int64)
    np.testing.assert_array_equal(squares % 16, (values * values) % 16)
    cubes = np.asarray(xp.pow(x, 3)).astype(np.int64)
    np.testing.assert_array_equal(cubes % 16, (values**3) % 16)


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", [*ARITHMETIC, *EQUALITY])
def test_complex(name: str, dtype: str) -> None:
    a, b = pairs(np.array([0, -0.0, 1, -2, 1j, 0.5 - 2j, 3 + 1j, 1e-3]).astype(dtype))
    wanted = {**ARITHMETIC, **EQUALITY}[name](a, b)
    if name == "divide":
        a, b, wanted = a[b != 0], b[b != 0], wanted[b != 0]  # C does not define x / 0
    if name == "pow":
        known = ~np.isnan(wanted)
        a, b, wanted = a[known], b[known], wanted[known]
    same(getattr(xp, name)(a, b), wanted)


@pytest.mark.parametrize(
    ("a", "b"), [((), (3,)), ((2, 1), (3,)), ((0,), (1,)), ((4, 1, 3), (2, 1)), ((2, 0), ())]
)
def test_shapes_broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    x, y = sample(a, "float32"), sample(b, "float32", 1)
    same(xp.subtract(x, y), x - y)
    same(traced(xp.maximum)(x, y), np.maximum(x, y))


def test_shapes_that_do_not_broadcast_are_shown_with_the_names() -> None:
    with pytest.raises(ShapeError, match=r"add got x1 of shape \(2,\), x2 of shape \(3,\)"):
        xp.add(np.ones(2), np.ones(3))


@pytest.mark.parametrize(
    ("name", "a", "b", "admitted"),
    [
        ("subtract", "bool", "bool", "x1 of dtype bool.*not bool"),
        ("hypot", "complex64", "int32", "x1 of dtype complex64.*real floating"),
        ("remainder", "complex64", "complex64", "real numeric"),
        ("bitwise_and", "float32", "int8", "x1 of dtype float32.*integer"),
        ("bitwise_left_shift", "int8", "float16", "x2 of dtype float16.*integer"),
        ("bitwise_or", "int64", "uint64", "x1 with x2 of dtype float64.*integer"),
        ("logaddexp", "int32", "complex64", "x2 of dtype complex64.*real floating"),
    ],
)
def test_other_dtypes_are_refused_by_name(name: str, a: str, b: str, admitted: str) -> None:
    with pytest.raises(DtypeError, match=f"{name} got .*{admitted}"):
        getattr(xp, name)(sample((2,), a), sample((2,), b))


class TestClip:
    A = np.array([-3, -1, 0, 2, 5])

    @pytest.mark.parametrize("dtype", ["int8", "uint16", "float16", "float32", "float64"])
    @pytest.mark.parametrize(("low", "high"), [(None, None), (0, None), (None, 2), (0, 2), (3, 1)])
    def test_against_numpy(self, dtype: str, low: int | None, high: int | None) -> None:
        a = np.abs(self.A).astype(dtype) if dtype[0] == "u" else self.A.astype(dtype)
        wanted = a if low is high is None else np.clip(a, low, high)
        identical(xp.clip(a, low, high), wanted)
        identical(xp.clip(a, min=low, max=high), wanted)

    def test_bounds_broadcast_and_nan_wins(self) -> None:
        a = sample((3, 1), "float32")
        low, high = np.array([-1, 0, np.nan], np.float32), np.float32(1)
        identical(xp.clip(a, low, high), np.clip(a, low, high))

    def test_dtypes_and_shapes_that_do_not_fit(self) -> None:
        with pytest.raises(ShapeError, match=r"clip got x of shape \(5,\), max of shape \(2,\)"):
            xp.clip(self.A, max=np.ones(2))
        with pytest.raises(DtypeError, match="clip got x of dtype complex64"):
            xp.clip(np.ones(2, np.complex64), 0, 1)
