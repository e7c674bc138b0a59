"""Checks that the reference device is used, and that it computes the same as NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import lax
from plugrt.errors import InvalidArgument, Unimplemented

X = np.float32([[1, 2, 3], [4, 5, 6]])


def test_it_is_the_device() -> None:
    assert [d.kind for d in plugrt.devices()] == ["StableHLO interpreter"]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x * 2 + 1, X * 2 + 1),
        (lambda x: xp.sum(x, axis=0), X.sum(axis=0)),
        (lambda x: x @ x.T, X @ X.T),
        (lambda x: xp.sort(-x, axis=1), np.sort(-X, axis=1)),
        (lambda x: lax.while_loop(lambda s: s[0, 0] < 9, lambda s: s * 2, x), X * 16),
        (lambda x: lax.cond(x[0, 0] > 0, lambda: x, lambda: -x), X),
        (lambda x: x > 3, X > 3),
    ],
)
def test_programs_compute_what_numpy_computes(function: Callable[..., Any], expected: Any) -> None:
    result = plugrt.jit(function)(X)
    assert result.dtype == expected.dtype
    np.testing.assert_allclose(np.asarray(result), expected)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "uint16", "float16", "float64"])
def test_dtypes_go_there_and_back(dtype: str) -> None:
    x = np.asarray([[1, 0, 1], [0, 1, 1], [1, 1, 0]]).astype(dtype)
    result = np.asarray(plugrt.jit(lambda x: x[::-1])(x))
    assert result.dtype == x.dtype
    np.testing.assert_array_equal(result, x[::-1])


def test_dtypes_that_it_lacks_are_refused_before_anything_runs() -> None:
    with pytest.raises(Unimplemented, match="complex64"):
        plugrt.device_put(np.complex64([1j]))
    with pytest.raises(Unimplemented, match="result 0 of the program has the dtype complex64"):
        plugrt.jit(lambda x: lax.complex(x, x))(X)


def test_operations_that_it_lacks_are_refused_before_anything_runs() -> None:
    kind = [plugrt.ShapeDtypeStruct((2, 3), np.float32)]

    def call_in_a_branch(x: Any) -> Any:
        return lax.cond(x[0, 0] > 0, lambda: lax.custom_call("f", [x], kind), lambda: [x])

    with pytest.raises(Unimplemented, match=r"lacks stablehlo\.custom_call"):
        plugrt.jit(call_in_a_branch)(X)
    with pytest.raises(Unimplemented, match=r"lacks stablehlo\.rng_bit_generator"):
        lax.rng_bit_generator(np.zeros(4, np.uint32), (3,))


def test_it_runs_on_one_device() -> None:
    with pytest.raises(InvalidArgument, match="reference has only 1 devices"):
        plugrt.pmap(lambda x: x + x)(np.ones((2, 3)))
