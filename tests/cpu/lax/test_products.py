from __future__ import annotations

from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest

from plugrt import lax
from plugrt.errors import ArgumentError, ShapeError
from support.jax_oracle import same

A = (np.arange(24, dtype=np.float32).reshape(2, 3, 4) * 3) % 7
B = (np.arange(40, dtype=np.float32).reshape(2, 4, 5) * 5) % 11


@pytest.mark.parametrize(
    ("x", "y", "numbers"),
    [
        (A, B, (((2,), (1,)), ((0,), (0,)))),
        (A, B, (((0, 2), (0, 1)), ((), ()))),
        (A, B, (((), ()), ((0,), (0,)))),
        (A[0], A[0], (((0, 1), (0, 1)), ((), ()))),
        (A.astype(np.int8), B.astype(np.int8), (((2,), (1,)), ((0,), (0,)))),
        (A > 3, B > 3, (((2,), (1,)), ((0,), (0,)))),
        (A.astype(np.complex64), B.astype(np.complex64), (((-1,), (-2,)), ((0,), (0,)))),
    ],
)
def test_dot_general_matches_jax(x: Any, y: Any, numbers: Any) -> None:
    theirs = tuple(tuple(tuple(d % 3 for d in s) for s in pair) for pair in numbers)
    theirs = numbers if x.ndim == 2 else theirs
    same(lax.dot_general(x, y, numbers), jax.lax.dot_general(x, y, theirs))


def test_sums_are_in_the_preferred_dtype() -> None:
    n = np.full((1, 300), 100, np.int8)
    found = lax.dot_general(n, n, (((1,), (1,)), ((), ())), preferred_element_type=np.int32)
    same(found, np.array([[3000000]], np.int32))
    x = np.ones((2, 3), ml_dtypes.bfloat16)
    assert lax.dot(x, x.T, preferred_element_type=np.float32).dtype == np.float32


NAMES = (
    "default", "bfloat16", "fastest", None, "high", "bfloat16_3x", "tensorfloat32", "highest",
    "float32", 0, 1, 2,
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_precisions_are_found_by_the_names_that_jax_has(name: Any) -> None:
    assert lax.Precision(name).name == jax.lax.Precision(name).name
    same(lax.dot(A[0], B[0], precision=lax.Precision(name)), A[0] @ B[0])
    if not isinstance(name, int):
        same(lax.dot(A[0], B[0], precision=name), A[0] @ B[0])


@pytest.mark.parametrize("name", ["nope", "HIGH", 3, 0.5, object(), [1]])
def test_unknown_precisions_are_refused_with_the_known_ones(name: Any) -> None:
    with pytest.raises(ArgumentError, match=r"not a lax\.Precision; it takes 'default'.*'float32'"):
        lax.Precision(name)


def test_products_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"contracting dimensions .* found \[3\] .* and \[4\]"):
        lax.dot_general(A, B, (((1,), (1,)), ((), ())))
    with pytest.raises(ArgumentError, match="vectors and matrices"):
        lax.dot(A, B)
    with pytest.raises(ArgumentError, match=r"'finest' is not a lax\.Precision"):
        lax.dot(A[0], B[0], precision="finest")


def kernels(*shape: int) -> np.ndarray[Any, Any]:
    return (np.arange(np.prod(shape), dtype=np.float32).reshape(shape) * 7) % 5 - 2


CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 8), (4, 3, 3), {"window_strides": (1,), "padding": "SAME"}),
    ((1, 3, 7, 6), (4, 3, 3, 2), {"window_strides": (2, 1), "padding": "VALID"}),
    ((1, 3, 7, 6), (4, 3, 2, 2), {"window_strides": (2, 3), "padding": "SAME_LOWER"}),
    (
        (1, 7, 6, 3),
        (3, 2, 3, 4),
        {
            "window_strides": (1, 1),
            "padding": ((1, 0), (2, 3)),
            "dimension_numbers": ("NHWC", "HWIO", "NHWC"),
        },
    ),
    (
        (1, 2, 5, 5),
        (3, 2, 3, 3),
        {
            "window_strides": (1, 1),
            "padding": ((1, 2), (0, 1)),
            "lhs_dilation": (2, 1),
            "rhs_dilation": (1, 2),
        },
    ),
    ((1, 4, 6), (8, 2, 3), {"window_strides": (1,), "padding": "SAME", "feature_group_count": 2}),
    ((4, 3, 6), (4, 3, 3), {"window_strides": (1,), "padding": "SAME", "batch_group_count": 2}),
    ((2, 3), (4, 3), {"window_strides": (), "padding": "VALID"}),
]


@pytest.mark.parametrize(("lhs", "rhs", "options"), CONVOLUTIONS)
def test_convolutions_match_jax(
    lhs: tuple[int, ...], rhs: tuple[int, ...], options: dict[str, Any]
) -> None:
    if options.get("dimension_numbers"):
        rhs = (3, 2, 3, 4)
    x, k = kernels(*lhs), kernels(*rhs)
    expected = jax.lax.conv_general_dilated(x, k, **options)
    same(lax.conv_general_dilated(x, k, **options), expected, rtol=1e-5, atol=1e-4)


def test_conv_takes_jaxs_dimension_numbers_and_integers() -> None:
    x, k = kernels(1, 3, 7).astype(np.int32), kernels(4, 3, 3).astype(np.int32)
    numbers = jax.lax.conv_dimension_numbers(x.shape, k.shape, ("NCW", "OIW", "NWC"))
    same(
        lax.conv_general_dilated(x, k, (1,), "SAME", dimension_numbers=numbers),
        jax.lax.conv_general_dilated(x, k, (1,), "SAME", dimension_numbers=numbers),
    )
    assert lax.conv_dimension_numbers(x.shape, k.shape, ("NCW", "OIW", "NWC")) == tuple(numbers)
    same(lax.conv(x, k, (2,), "SAME"), jax.lax.conv(x, k, (2,), "SAME"))


@pytest.mark.parametrize(
    ("lhs", "rhs", "options", "error", "message"),
    [
        ((1, 3, 7), (4, 2, 3), {}, ShapeError, "has 3 features.* has 2"),
        ((1, 3, 7), (4, 3, 3, 3), {}, ShapeError, r"\(1, 3, 7\) and \(4, 3, 3, 3\)"),
        ((1, 3, 7), (4, 3, 3), {"padding": "FULL"}, ArgumentError, "got 'FULL'"),
        ((1, 3, 7), (4, 3, 3), {"window_strides": (1, 1)}, ArgumentError, "needs 1"),
        (
            (1, 3, 7),
            (4, 3, 3),
            {"dimension_numbers": ("NCW", "OIW", "NCX")},
            ArgumentError,
            "the s",
        ),
        ((1, 3, 7), (4, 3, 3), {"lhs_dilation": (2,)}, ArgumentError, "padding 'SAME'"),
        ((3, 3, 7), (4, 3, 3), {"batch_group_count": 2}, ShapeError, "multiple of 2 batch groups"),
        (
            (1, 3, 7),
            (4, 3, 3),
            {"padding": ((1, 1), (1, 1))},
            ArgumentError,
            "each of 1 dimensions",
        ),
    ],
)
def test_convolutions_that_do_not_fit_are_refused(
    lhs: Any, rhs: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    options = {"window_strides": (1,), "padding": "SAME", **options}
    with pytest.raises(error, match=message):
        lax.conv_general_dilated(kernels(*lhs), kernels(*rhs), **options)
