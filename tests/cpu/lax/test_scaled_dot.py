"""`lax.scaled_dot`: products with a factor for each block, beside JAX's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import plugrt
from plugrt import lax
from plugrt.errors import ArgumentError, ArgumentTypeError, AxisError, ShapeError
from support.behaviour import behaviour
from support.jax_oracle import jax, same, same_at_once

FACTORS = np.dtype(ml_dtypes.float8_e8m0fnu)
DTYPES = [
    "float4_e2m1fn", "float8_e4m3fn", "float8_e5m2", "bfloat16", "float16", "float32", "int8",
    "int32", "bool",
]  # fmt: skip


def kind_of(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name, name))


def draw(seed: int, shape: tuple[int, ...], dtype: Any) -> Any:
    """Returns small integers, whose products and sums are exact in bfloat16 and float32."""
    return np.random.default_rng(seed).integers(0, 3, shape).astype(np.float32).astype(dtype)


def scales(seed: int, shape: tuple[int, ...], dtype: Any = FACTORS) -> Any:
    powers = np.random.default_rng(seed).integers(0, 3, shape)
    return (2.0**powers).astype(np.float32).astype(dtype)


@behaviour(19, "`lax.scaled_dot` is JAX's for each dtype, scale and `preferred_element_type`")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("result", [None, "float32", "float16", "int32"])
def test_results_are_jaxs(dtype: str, result: str | None) -> None:
    lhs, rhs = draw(0, (2, 4, 16), kind_of(dtype)), draw(1, (2, 16, 3), kind_of(dtype))
    kind = None if result is None else kind_of(result)
    scaled = [
        {
            "lhs_scale": None if left is None else scales(2, left),
            "rhs_scale": None if right is None else scales(3, right),
        }
        for left, right in ((None, None), ((2, 4, 2), None), ((2, 4, 8), (2, 4, 3)))
    ]

    same_at_once(
        lambda of, x, y, scaled: [
            of.scaled_dot(x, y, preferred_element_type=kind, **each) for each in scaled
        ],
        lhs, rhs, scaled,
    )  # fmt: skip


@pytest.mark.parametrize("dtype", ["float8_e8m0fnu", "float8_e4m3fn", "bfloat16", "float32"])
def test_scales_of_each_dtype(dtype: str) -> None:
    lhs, rhs = draw(0, (4, 16), np.float32), draw(1, (16, 3), np.float32)
    options = {"lhs_scale": scales(2, (4, 2), kind_of(dtype)), "rhs_scale": scales(3, (8, 3))}
    options["preferred_element_type"] = np.float32
    expected = np.repeat(options["lhs_scale"].astype(np.float32), 8, axis=1) * lhs
    expected = expected @ (np.repeat(options["rhs_scale"].astype(np.float32), 2, axis=0) * rhs)
    same(lax.scaled_dot(lhs, rhs, **options), expected)
    same(lax.scaled_dot(lhs, rhs, **options), jax.lax.scaled_dot(lhs, rhs, **options))


@pytest.mark.parametrize(
    ("shapes", "numbers"),
    [
        (((16, 4), (16, 3), (2, 4)), (((0,), (0,)), ((), ()))),
        (((2, 4, 16), (3, 2, 16), (2, 4, 4)), (((2,), (2,)), ((0,), (1,)))),
        (((4, 6, 8), (6, 8, 3), (4, 3, 2)), (((1, 2), (0, 1)), ((), ()))),
    ],
)
def test_dimension_numbers(shapes: Any, numbers: Any) -> None:
    lhs, rhs = draw(0, shapes[0], np.float32), draw(1, shapes[1], np.float32)
    options = {"lhs_scale": scales(2, shapes[2]), "dimension_numbers": numbers}
    same(lax.scaled_dot(lhs, rhs, **options), jax.lax.scaled_dot(lhs, rhs, **options))


def test_it_is_the_composite_that_compilers_know() -> None:
    x, s = draw(0, (4, 64), ml_dtypes.float8_e4m3fn), scales(1, (4, 2))
    text = plugrt.jit(lambda x, s: lax.scaled_dot(x, x.T, lhs_scale=s)).lower(x, s).as_text()
    theirs = jax.jit(lambda x, s: jax.lax.scaled_dot(x, x.T, lhs_scale=s)).lower(x, s).as_text()
    stated = theirs[theirs.index("{composite_attributes = ") : theirs.index(", decomposition")]
    assert 'stablehlo.composite "xla.scaled_dot"' in text
    assert stated in text


A, B = np.ones((4, 16), np.float32), np.ones((16, 3), np.float32)
REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "vectors": (lambda: lax.scaled_dot(A[0], B[:, 0]), ArgumentError, "one rank of 2 or more"),
    "two ranks": (lambda: lax.scaled_dot(A, B[None]), ArgumentError, r"\(4, 16\) and \(1, 16, 3"),
    "a factor for each element": (
        lambda: lax.scaled_dot(A, B, lhs_scale=A), ShapeError, "lhs_scale .* at least by 2"),
    "a block that does not divide": (
        lambda: lax.scaled_dot(A, B, lhs_scale=A[:, :3]), ShapeError, r"along \(1,\) some that di"),
    "too few rows": (
        lambda: lax.scaled_dot(A, B, rhs_scale=B[:8, :2]), ShapeError, r"rhs_scale .*\(8, 2\)"),
    "another rank": (lambda: lax.scaled_dot(A, B, lhs_scale=A[0, :8]), ShapeError, "lhs_scale"),
    "one pair of numbers": (
        lambda: lax.scaled_dot(A, B, dimension_numbers=((1,), (0,))), ArgumentTypeError,
        r"dimension_numbers of lax.scaled_dot is \(\(1,\), \(0,\)\); it takes \(\(lhs_contracting"),
    "no dimension": (
        lambda: lax.scaled_dot(A, B, dimension_numbers=(((1,), (5,)), ((), ()))), AxisError,
        "of lax.scaled_dot is 5"),
    "None for none": (
        lambda: lax.scaled_dot(A, B, dimension_numbers=(((1,), (0,)), (None, None))), AxisError,
        "found None"),
    "lengths that differ": (lambda: lax.scaled_dot(A, B[:8]), ShapeError, "equal lengths"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_calls_are_named(case: str) -> None:
    call, error, words = REFUSED[case]
    with pytest.raises(error, match=words):
        call()
