"""Products of matrices, vectors and tensors against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrt.array_api as xp
from plugrt import config, jit
from plugrt.array_api import matmul
from plugrt.errors import AxisError, ShapeError
from support.numpy_oracle import NUMERIC, same, sample


def pair(first: tuple[int, ...], second: tuple[int, ...], dtype: str = "float32") -> Any:
    """Returns two host arrays and the same two on the device."""
    a, b = sample(first, dtype), sample(second, dtype, seed=1)
    return a, b, xp.asarray(a), xp.asarray(b)


def exact(a: Any) -> Any:
    """Returns a host array in a dtype whose products are exact."""
    return a.astype(np.float64) if a.dtype.kind not in "iuc" else a


@pytest.mark.parametrize("dtype", NUMERIC)
def test_every_dtype(dtype: str) -> None:
    a, b, x, y = pair((2, 3), (3, 4), dtype)
    same(xp.matmul(x, y), (exact(a) @ exact(b)).astype(a.dtype))
    same(xp.tensordot(x, y, axes=1), np.tensordot(exact(a), exact(b), 1).astype(a.dtype))
    expected = (np.conj(exact(a)) * exact(b[:, 0])).sum(-1, dtype=exact(a).dtype)
    same(xp.vecdot(x, y[:, 0]), expected.astype(a.dtype))
    same(xp.matrix_transpose(x), a.T)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((5, 2, 3), (3,)), ((3,), (5, 3, 4)),
        ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)), ((5, 2, 3), (5, 3, 4)), ((5, 1, 2, 3), (6, 3, 4)),
        ((1, 2, 3), (5, 3, 4)), ((0, 3), (3, 4)), ((2, 0), (0, 4)), ((0,), (0,)),
        ((0, 2, 3), (0, 3, 4)),
    ],
)  # fmt: skip
def test_matmul_of_every_rank(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    a, b, x, y = pair(first, second)
    same(xp.matmul(x, y), np.matmul(a, b))


@pytest.mark.parametrize(
    ("first", "second"), [((2, 3), (4, 3)), ((3,), (4,)), ((2, 3), (4,)), ((), (3,)), ((3,), ())]
)
def test_matmul_refuses_sizes_that_do_not_fit(first: Any, second: Any) -> None:
    _, _, x, y = pair(first, second)
    with pytest.raises(ShapeError) as caught:
        xp.matmul(x, y)
    assert str(first) in str(caught.value)
    assert str(second) in str(caught.value)


def test_shapes_and_axes_that_do_not_match_are_refused() -> None:
    _, _, x, y = pair((2, 2, 3), (4, 3, 2))
    with pytest.raises(ShapeError, match="do not broadcast"):
        xp.matmul(x, y)
    with pytest.raises(ShapeError, match="two dimensions"):
        xp.matrix_transpose(x[0, 0])
    with pytest.raises(ShapeError, match=r"sizes \[3\] and \[2\] differ"):
        xp.tensordot(x, y, axes=((2,), (2,)))
    for axes in (4, -1, (0,), ((0,), (0, 1)), "ab"):
        with pytest.raises(AxisError, match="tensordot"):
            xp.tensordot(x, y, axes=axes)
    for axis in (0, -4):
        with pytest.raises(AxisError, match="axis of vecdot"):
            xp.vecdot(x, x, axis=axis)
    with pytest.raises(ShapeError, match="sizes along axis -1 differ"):
        xp.vecdot(x, y)
    with pytest.raises(ShapeError, match="do not broadcast"):
        xp.vecdot(x[..., :2], y)


@pytest.mark.parametrize("axis", [-1, -2])
def test_vecdot_broadcasts_along_any_axis(axis: int) -> None:
    a, b, x, y = pair((5, 3, 4), (3, 4), "complex64")
    same(xp.vecdot(x, y, axis=axis), (a.conj() * b).sum(axis))


def test_the_default_precision_is_part_of_the_program() -> None:
    a, b, x, y = pair((2, 3), (3, 4))
    names = {None: "DEFAULT", "bfloat16": "DEFAULT", "tensorfloat32": "HIGH", "float32": "HIGHEST"}
    for name, stated in names.items():
        with config.override(default_matmul_precision=name):
            same(xp.matmul(x, y), a @ b)
            assert f"precision = [{stated}, {stated}]" in text_of(x, y)


def text_of(x: Any, y: Any) -> str:
    """Returns the StableHLO text of a product."""
    return jit(lambda x, y: matmul(x, y)).lower(x, y).as_text()
