"""Manipulation functions against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrt.array_api as xp
from plugrt.errors import ArgumentError, AxisError, DataDependentShape, DtypeError, ShapeError
from support.numpy_oracle import ALL, identical, sample, traced

A = sample((2, 3, 4), "float32")
X = xp.asarray(A)


@pytest.mark.parametrize("dtype", ALL)
def test_moving_elements_keeps_every_dtype(dtype: str) -> None:
    a = sample((2, 3, 4), dtype)
    x = xp.asarray(a)
    identical(xp.flip(xp.permute_dims(x, (2, 0, 1)), axis=1), np.flip(a.transpose(2, 0, 1), 1))
    identical(xp.concat([x, x], axis=1), np.concatenate([a, a], 1))
    identical(xp.roll(xp.tile(x, (2, 1, 1)), 1, axis=0), np.roll(np.tile(a, (2, 1, 1)), 1, 0))
    identical(xp.repeat(x, 2, axis=-1), a.repeat(2, -1))


@pytest.mark.parametrize("shape", [(4, 3, 4), (2, 3, 4), (5, 2, 3, 4), (0, 2, 3, 4)])
def test_broadcast_to(shape: tuple[int, ...]) -> None:
    a = A[:1] if shape[0] == 4 else A
    identical(xp.broadcast_to(xp.asarray(a), shape), np.broadcast_to(a, shape))


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 5), (4,), ()])
def test_the_error_of_broadcast_to_names_both_shapes(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match=r"\(2, 3, 4\)") as caught:
        xp.broadcast_to(X, shape)
    assert str(shape) in str(caught.value)


def test_broadcast_arrays_keeps_dtypes() -> None:
    arrays = [A, np.int8(3), np.ones((3, 1), np.bool_)]
    found = xp.broadcast_arrays(*map(xp.asarray, arrays))
    for result, expected in zip(found, np.broadcast_arrays(*arrays), strict=True):
        identical(result, expected)
    assert xp.broadcast_arrays() == []
    with pytest.raises(ShapeError, match=r"arrays\[1\] of shape \(2,\)"):
        xp.broadcast_arrays(X, xp.asarray(np.zeros(2)))


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_concat_promotes(axis: int | None) -> None:
    b = sample((2, 3, 4), "int16", seed=1)
    expected = np.concatenate([A, b.astype(np.float32)], axis)
    identical(xp.concat([X, xp.asarray(b)], axis=axis), expected)


def test_concat_and_stack_of_empty_and_single_arrays() -> None:
    empty = np.zeros((0, 3), np.float32)
    identical(xp.concat([xp.asarray(empty), xp.asarray(A[0, :, :3])]), A[0, :, :3])
    identical(xp.concat((X,)), A)
    identical(xp.stack([xp.asarray(np.float32(1)), 2.0]), np.asarray([1, 2], np.float32))


def test_concat_refuses() -> None:
    with pytest.raises(ShapeError, match=r"arrays\[1\] of shape \(3, 4\)"):
        xp.concat([X, X[0]])
    with pytest.raises(ShapeError, match=r"\(2, 3, 4\).*\(2, 3, 3\)"):
        xp.concat([X, X[..., :3]], axis=1)
    with pytest.raises(ShapeError, match="no arrays"):
        xp.concat([])
    with pytest.raises(AxisError, match="axis of concat is 3"):
        xp.concat([X], axis=3)


def test_stack_refuses_different_shapes() -> None:
    with pytest.raises(ShapeError, match=r"arrays\[1\] of shape \(3, 4\)"):
        xp.stack([X, X[0]])
    with pytest.raises(AxisError):
        xp.unstack(xp.asarray(np.float32(1)))


def test_expand_dims_and_squeeze_of_several_axes() -> None:
    wide = xp.expand_dims(X, axis=(0, -1))
    identical(wide, np.expand_dims(A, (0, -1)))
    identical(xp.squeeze(wide, axis=(0, 4)), A)
    with pytest.raises(ShapeError, match="axis 1 of x of shape"):
        xp.squeeze(wide, axis=1)
    for axis in (4, -5):
        with pytest.raises(IndexError):
            xp.expand_dims(X, axis=axis)


def test_axes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError, match="each axis must be named once"):
        xp.permute_dims(X, (0, 1))
    with pytest.raises(AxisError, match="names an axis twice"):
        xp.permute_dims(X, (0, 1, -2))
    with pytest.raises(ShapeError, match="2 axes in source and 1 in destination"):
        xp.moveaxis(X, (0, 1), (0,))
    with pytest.raises(AxisError, match="'0', which is not an integer"):
        xp.flip(X, axis="0")


@pytest.mark.parametrize("shape", [(24,), (4, -1), (-1,), 24, (1, 2, 12), (2, 3, 4)])
@pytest.mark.parametrize("copy", [None, True])
def test_reshape(shape: Any, copy: bool | None) -> None:
    identical(xp.reshape(X, shape, copy=copy), A.reshape(shape))


@pytest.mark.parametrize("shape", [(5, 5), (-1, 5), (-1, -1), (2.0, 12), (-2, -12), (0, -1)])
def test_reshape_refuses(shape: Any) -> None:
    with pytest.raises(ShapeError, match="reshape"):
        xp.reshape(X, shape)


def test_reshape_and_copies() -> None:
    with pytest.raises(ValueError, match="copy=False"):
        xp.reshape(X, (24,), copy=False)
    same = xp.reshape(X, A.shape, copy=False)
    assert same.unsafe_buffer_pointer() == X.unsafe_buffer_pointer()
    copied = xp.reshape(X, A.shape, copy=True)
    copied.delete()
    assert not X.is_deleted()
    identical(xp.reshape(xp.asarray(A[:0]), (3, 0)), A[:0].reshape(3, 0))


@pytest.mark.parametrize("repeats", [[1, 0, 3], [0, 0, 0], [2], [0, 5, 0]])
def test_repeat_by_an_array(repeats: list[int]) -> None:
    identical(xp.repeat(X, xp.asarray(np.array(repeats)), axis=1), A.repeat(repeats, 1))
    identical(xp.repeat(X, repeats, axis=-2), A.repeat(repeats, 1))


def test_repeat_by_a_traced_array_needs_a_total() -> None:
    repeats = xp.asarray(np.array([1, 2, 0]))
    expected = A.repeat([1, 2, 0], 1)
    with pytest.raises(DataDependentShape, match="total_repeat_length"):
        traced(lambda r: xp.repeat(X, r, axis=1))(repeats)
    identical(traced(lambda r: xp.repeat(X, r, axis=1, total_repeat_length=3))(repeats), expected)
    longer = traced(lambda r: xp.repeat(X, r, axis=1, total_repeat_length=5))(repeats)
    identical(longer[:, :3], expected)


def test_repeat_refuses() -> None:
    with pytest.raises(ArgumentError, match="repeats of repeat is -1"):
        xp.repeat(X, -1)
    for repeats in (True, 1.5, [0.5, 1, 2]):
        with pytest.raises(DtypeError, match="repeat got repeats of dtype"):
            xp.repeat(X, repeats, axis=1)
    with pytest.raises(ArgumentError, match="has -2"):
        xp.repeat(X, [1, -2, 0], axis=1)
    with pytest.raises(ShapeError, match=r"repeats of shape \(2,\)"):
        xp.repeat(X, [1, 2], axis=1)


def test_roll_by_a_traced_shift_and_of_empty_arrays() -> None:
    identical(traced(lambda s: xp.roll(X, s, axis=2))(xp.asarray(np.int32(3))), np.roll(A, 3, 2))
    identical(xp.roll(X[:0], 3, axis=0), A[:0])
    with pytest.raises(DtypeError, match="shift of dtype"):
        xp.roll(X, 1.5)
    with pytest.raises(AxisError, match="2 shifts and no axis"):
        xp.roll(X, (1, 2))
    with pytest.raises(AxisError, match="2 shifts for 3 axes"):
        xp.roll(X, (1, 2), axis=(0, 1, 2))


@pytest.mark.parametrize("repetitions", [(2,), (1, 2, 1), (2, 1, 1, 2), (), (0, 1, 1)])
def test_tile(repetitions: tuple[int, ...]) -> None:
    identical(xp.tile(X, repetitions), np.tile(A, repetitions))


@pytest.mark.parametrize(
    ("shift", "axis"),
    [(1, None), (-7, None), (2, 1), (-9, -1), ((1, 2), (0, 2)), ((1, 1), (1, 1)), (1, (0, 1))],
)
def test_roll(shift: Any, axis: Any) -> None:
    identical(xp.roll(X, shift, axis=axis), np.roll(A, shift, axis))
