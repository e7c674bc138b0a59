"""Indexing against NumPy: ``x[key]``, `take`, `take_along_axis`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import plugrt
import plugrt.array_api as xp
from plugrt import monitoring
from plugrt.errors import (
    AxisError,
    DataDependentShape,
    DtypeError,
    InvalidIndex,
    ShapeError,
    TracingError,
)
from plugrt.interface import CompileOptions
from support.compiles import counting
from support.effort import EFFORT
from support.jax_oracle import jax
from support.keys import keys
from support.numpy_oracle import ALL, identical, sample, traced
from support.xla_cpu import add

A = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
X = xp.asarray(A)
MASK = A[:, :, 0] % 2 == 0

BASIC: list[Any] = [
    0, -1, (0, 1), (2, -4, -5), (), ..., None, (..., 0), (None, 0, ..., None), (1, ..., 2),
    slice(None), slice(1, 2), slice(None, None, -1), slice(2, 0, -2), slice(5, 9), slice(-9, 1),
    (slice(0, 3, 2), slice(3, None, -2)), (slice(None), 1, slice(None, None, 2)),
    (0, slice(None, None, -3), None), (slice(1, 1), 0),
]  # fmt: skip
ARRAYS: list[Any] = [
    [0, 2], [[0, -1], [1, 2]], ([0, 2], [1, 1]), ([[0], [1]], [0, 2, -4]),
    (slice(None), [0, 1]), (slice(None), [0, 1], [0, 1]), ([0, 1], slice(None), [0, 1]),
    (0, slice(None), [0, 1]), (slice(None), 0, [[0, 1], [2, 3]]), (None, [0, 1], ..., [0, 4]),
    (slice(None), None, [0, 1]), ([0, 1], None, [1, 1]), (slice(None), [0], ..., [1]),
    (slice(None), [[0], [1]], slice(None, None, -2)), (slice(None), []), (slice(1, 1), [0, 1]),
    (np.array(1),), (np.array(1), [0, 1]), np.zeros((0, 2), np.int64), np.uint8([2, 0]),
    MASK, (MASK, 0), (slice(None), np.array([True, False, True, True])), (MASK, [4]),
    True, False, (True, 0), (np.True_, [0, 1]), np.zeros((3, 4, 5), np.bool_), A > 30,
]  # fmt: skip


@pytest.mark.parametrize("key", BASIC, ids=repr)
def test_basic_keys(key: Any) -> None:
    identical(X[key], A[key])


@pytest.mark.parametrize("key", ARRAYS, ids=repr)
def test_keys_with_arrays(key: Any) -> None:
    identical(X[key], A[key])


@pytest.mark.parametrize("key", [(..., (0, 2)), ((0, 2), 1), ((), 0)], ids=repr)
def test_a_tuple_within_a_key_is_an_array(key: Any) -> None:
    identical(X[key], A[key])
    identical(traced(lambda x: x[key])(X), A[key])


@pytest.mark.parametrize("key", [*BASIC, *ARRAYS], ids=repr)
def test_keys_while_tracing(key: Any) -> None:
    identical(traced(lambda x: x[key])(X), A[key])


@pytest.mark.parametrize("dtype", ALL)
def test_every_dtype(dtype: str) -> None:
    a = sample((4, 3), dtype)
    x = xp.asarray(a)
    identical(x[::-2, 1], a[::-2, 1])
    identical(x[[3, 0], 1:], a[[3, 0], 1:])


@settings(max_examples=100 * EFFORT, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_random_keys_give_what_numpy_gives(data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from([(3, 4, 5), (2, 1, 3), (4,), (0, 3), ()]))
    key = data.draw(keys(shape))
    # NumPy accepts an empty mask for an axis of another size if the result is empty.
    assume(all(k.size for k in key if isinstance(k, np.ndarray) and k.dtype == np.bool_))
    a = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    try:
        expected = a[key]
    except IndexError:
        # Positions in arrays are clamped, as in JAX; another test checks that.
        assume(not any(isinstance(k, np.ndarray) and k.dtype != np.bool_ for k in key))
        with pytest.raises(InvalidIndex):
            xp.asarray(a)[key]
        return
    identical(xp.asarray(a)[key], expected)


def test_an_empty_mask_has_the_length_of_its_axis() -> None:
    """Differs from JAX: `x[mask]` with a mask of shape `(0,)` for an axis of another length |
    nothing, as in NumPy | refused, as other lengths are.
    """
    mask = np.zeros(0, np.bool_)
    assert jax.numpy.ones(3)[mask].shape == (0,)
    with pytest.raises(InvalidIndex, match="they must be equal"):
        xp.ones(3)[mask]


@pytest.mark.parametrize("shape", [(0,), (0, 3), (1,), (7, 0), (100,), (101, 2), (250,)])
def test_iteration_gives_what_indexing_gives(shape: tuple[int, ...]) -> None:
    host = np.arange(np.prod(shape), dtype=np.int16).reshape(shape)
    there = plugrt.device_put(host, plugrt.devices()[-1])
    for x in (xp.asarray(host), there):
        rows = list(x)
        assert len(rows) == len(host)
        for i, row in enumerate(rows):
            identical(row, host[i])
            assert row.device is x.device
            assert row.committed is x.committed


def test_iteration_launches_once_for_a_hundred_rows() -> None:
    x = xp.asarray(np.arange(301, dtype=np.float32))
    launches: list[Any] = []
    client = plugrt.get_backend()
    loaded: Any = type(client.compile(add("tensor<1xf32>"), CompileOptions()))
    real = loaded.launcher.fget
    with pytest.MonkeyPatch.context() as patch:
        plugrt.clear_caches()

        def launcher(self: Any) -> Any:
            launch = real(self)

            def launching(arguments: Any) -> Any:
                launches.append(self)
                return launch(arguments)

            return launching

        patch.setattr(loaded, "launcher", property(launcher))
        patch.setattr(loaded, "launch_steps", None)  # with steps the core calls no launcher
        assert [int(row) for row in x] == [*range(301)]
    plugrt.clear_caches()
    assert len(launches) == 8  # four slices, and their operations


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (3, "index 3 is out of bounds for axis 0"),
        (-4, "index -4 is out of bounds for axis 0"),
        ((0, 0, 5), "index 5 is out of bounds for axis 2"),
        ((0, 0, 0, 0), "takes 4 axes"),
        ((..., ...), "more than one ellipsis"),
        ("a", "'a' of type str"),
        (1.0, "1.0 of type float"),
        (np.zeros(2), "dtype float64"),
        (np.ones((3, 3), np.bool_), r"shape \(3, 3\) meets axes of shape \(3, 4\)"),
        (([0, 1], [0, 1, 2]), r"\(2,\), \(3,\)"),
        (slice(None, None, 0), "zero"),
        (slice("a"), "is not an index"),
    ],
    ids=repr,
)
def test_keys_that_are_refused(key: Any, said: str) -> None:
    with pytest.raises(IndexError, match=said) as caught:
        X[key]
    assert type(caught.value) is InvalidIndex
    with pytest.raises(InvalidIndex, match=said):
        traced(lambda x: x[key])(X)


def test_indexing_an_array_without_elements() -> None:
    a = np.zeros((0, 3), np.float32)
    nothing = xp.asarray(a)
    for key in ((slice(None), []), np.zeros(0, np.bool_), np.zeros((0, 3), np.bool_), (..., 2)):
        identical(nothing[key], a[key])
    for key in ([0], xp.asarray(np.int32(0))):
        with pytest.raises(InvalidIndex, match="no elements there"):
            nothing[key]


def test_positions_in_arrays_are_clamped_as_in_jax() -> None:
    x = xp.asarray(np.arange(5))
    identical(x[xp.asarray(np.array([4, 7, -5, -9]))], np.array([4, 4, 0, 0]))
    identical(x[xp.asarray(np.int32(9))], np.int64(4))
    identical(x[xp.asarray(np.uint32([2**32 - 1]))], np.array([4]))


def test_traced_integers_are_dynamic() -> None:
    program = traced(lambda x, i: x[i, :, i + 1])
    with counting() as counter:
        for i in (0, 1, -3):
            identical(program(X, xp.asarray(np.int32(i))), A[i, :, i + 1])
    assert counter[monitoring.COMPILE] == 1


def test_the_error_of_a_traced_mask_suggests_a_replacement() -> None:
    with pytest.raises(DataDependentShape, match=r"array_api\.where"):
        traced(lambda x: x[x > 3])(X)
    with pytest.raises(DataDependentShape, match=r"at\[mask\]\.set"):
        traced(lambda x: x[0, x[0, :, 0] > 3])(X)


def test_the_error_of_a_traced_slice_bound_suggests_a_replacement() -> None:
    with pytest.raises(TracingError, match="dynamic_slice"):
        traced(lambda x, i: x[:i])(X, xp.asarray(np.int32(2)))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_take(axis: int) -> None:
    for indices in ([0, 2, -1], [[1, 1], [0, 2]], []):
        host = np.asarray(indices, np.int32)
        identical(xp.take(X, xp.asarray(host), axis=axis), A.take(host, axis))
    identical(xp.take(X[0, 0], xp.asarray(np.int64(3))), A[0, 0, 3])


def test_take_with_indices_out_of_bounds() -> None:
    x, i = xp.asarray(np.arange(3, dtype=np.float32)), xp.asarray(np.array([0, 3, -4, -1, 8]))
    nan = np.nan
    identical(xp.take(x, i), np.float32([0, nan, nan, 2, nan]))
    identical(xp.take(x, i, fill_value=7), np.float32([0, 7, 7, 2, 7]))
    identical(xp.take(x, i, mode="clip"), np.float32([0, 2, 0, 2, 2]))
    identical(xp.take(x, i, mode="wrap"), np.float32([0, 0, 2, 2, 2]))
    integers = xp.asarray(np.arange(3, dtype=np.int16))
    identical(xp.take(integers, i), np.int16([0, -(2**15), -(2**15), 2, -(2**15)]))


def test_take_refuses() -> None:
    i = xp.asarray(np.array([0]))
    with pytest.raises(AxisError, match="no axis"):
        xp.take(X, i)
    with pytest.raises(DtypeError, match="indices of dtype float32"):
        xp.take(X, X, axis=0)
    with pytest.raises(InvalidIndex, match="no elements along"):
        xp.take(X[:0], i, axis=0)


def test_take_along_axis_broadcasts_and_fills() -> None:
    i = np.array([[[0], [3], [1], [7]]])
    found = xp.take_along_axis(X, xp.asarray(i), axis=1)
    expected = np.take_along_axis(A, np.broadcast_to(np.minimum(i, 3), (3, 4, 5)), 1)
    expected[:, 3] = np.nan
    identical(found, expected)
    with pytest.raises(ShapeError, match=r"indices of shape \(2,\)"):
        xp.take_along_axis(X, xp.asarray(np.array([0, 1])), axis=0)


@pytest.mark.parametrize(
    "key",
    [None, ..., slice(None), slice(1, 1), slice(None, None, -1), (None, slice(0, 0))],
    ids=repr,
)
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3,)])
def test_a_part_without_elements_is_where_the_array_is(shape: tuple[int, ...], key: Any) -> None:
    """Same as JAX: basic indices of empty arrays, and empty slices, follow the array in `jit`."""
    a = np.zeros(shape, np.float32)
    x = plugrt.device_put(a, plugrt.devices()[3])
    part = plugrt.jit(lambda v: v[key])(x)
    assert (part.shape, part.devices()) == (a[key].shape, {plugrt.devices()[3]})
    np.testing.assert_array_equal(x.at[key].add(1), a + 1 if a[key].size else a)


def test_bounds_of_slices_may_be_arrays() -> None:
    two = xp.asarray(np.int32(2))
    identical(X[:two], A[:2])
    identical(X[np.int64(1), np.int8(1) : 3], A[1, 1:3])


class Foreign:
    """An array of another library."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.values


class Standing:
    """An object that converts itself to an array of plugrt."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __jax_array__(self) -> Any:
        return xp.asarray(self.values)


@pytest.mark.parametrize("cls", [Foreign, Standing])
@pytest.mark.parametrize("key", [[1, 2], [[0], [3]], [True, False, False, True]])
def test_arrays_of_others_as_keys(cls: Any, key: Any) -> None:
    x, expected = xp.arange(4.0), np.arange(4.0)
    np.testing.assert_array_equal(x[cls(key)], expected[key])
    np.testing.assert_array_equal(plugrt.jit(lambda x: x[cls([1, 2])])(x), expected[[1, 2]])
    x[cls(key)] = expected[key] = 9
    np.testing.assert_array_equal(x, expected)
    with pytest.raises(IndexError, match="float"):
        x[cls([1.5])]
