"""``x.at[key]`` against NumPy's assignments and unbuffered updates."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import plugrt
import plugrt.array_api as xp
from plugrt import monitoring
from plugrt.errors import ArgumentError, DataDependentShape, DtypeError, InvalidIndex, ShapeError
from support.compiles import counting
from support.effort import some_of
from support.jax_oracle import jax
from support.keys import keys
from support.numpy_oracle import ALL, identical, same, sample, traced

A = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
X = xp.asarray(A)
MASK = A % 3 == 0

KEYS: list[Any] = [
    0, (0, 1, 2), (-1, -1), (), ..., None, slice(1, 3), slice(None, None, 2), slice(1, 1),
    (slice(None, None, -2), 1), (slice(None), slice(3, None, -2), slice(0, 5, 3)),
    (0, None, slice(2, 4)), [0, 2], ([0, 2], [1, 1]), ([0, 1], slice(None), [0, 1]),
    (slice(1, 3), [0, 1]), (slice(None, None, -2), [3, 0], slice(1, 3)),
    (None, [0, 1], ..., [0, 4]),
    (slice(0, 3, 2), slice(None), [[0], [3]]), (1, slice(None), [2, 0]), MASK, MASK[:, :, 0],
    (slice(None), MASK[0]), (True, 1), False, [],
]  # fmt: skip
UPDATES: dict[str, Callable[[Any, Any, Any], None]] = {
    "set": lambda a, k, v: a.__setitem__(k, v),
    "add": np.add.at,
    "subtract": np.subtract.at,
    "multiply": np.multiply.at,
    "min": np.minimum.at,
    "max": np.maximum.at,
}


def expected_of(how: str, a: Any, key: Any, value: Any) -> Any:
    """Returns NumPy's result on a copy of ``a``."""
    a = a.copy()
    UPDATES[how](a, key, value)
    return a


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_set_and_add(key: Any) -> None:
    value = sample(A[key].shape, "float32", seed=1)
    identical(X.at[key].set(value), expected_of("set", A, key, value))
    identical(X.at[key].add(value), expected_of("add", A, key, value))


@pytest.mark.parametrize("how", sorted(UPDATES))
@pytest.mark.parametrize("key", [(1, slice(None, None, 2)), ([0, 2, 2], [1, 1, 3]), MASK], ids=repr)
def test_every_update_takes_scalars_and_broadcasts(how: str, key: Any) -> None:
    for value in (7, 2.5, np.float32(-1)):
        found = getattr(X.at[key], how)(value)
        same(found, expected_of(how, A, key, np.float32(value)))


@pytest.mark.parametrize("dtype", ALL)
def test_every_dtype(dtype: str) -> None:
    a, v = sample((4, 3), dtype), sample((2, 3), dtype, seed=2)
    x = xp.asarray(a)
    identical(x.at[[3, 0]].set(v), expected_of("set", a, [3, 0], v))
    identical(x.at[1::2].set(v), expected_of("set", a, slice(1, None, 2), v))
    if dtype != "bool":
        identical(x.at[[3, 0]].add(v), expected_of("add", a, [3, 0], v))
        identical(x.at[:2].multiply(v), expected_of("multiply", a, slice(2), v))


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_random_keys(data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from([(3, 4, 5), (4,), (2, 3)]))
    key = data.draw(keys(shape))
    a = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    try:
        inner = a[key].shape
    except IndexError:
        assume(False)
    value = sample(inner, "int32", seed=3)
    x = xp.asarray(a)
    identical(x.at[key].add(value), expected_of("add", a, key, value))
    filled = expected_of("set", a, key, -1)
    identical(traced(lambda x: x.at[key].set(-1))(x), filled)


def test_duplicates_add_up() -> None:
    x = xp.asarray(np.ones(3, np.float32))
    i = [1, 1, 1, 2]
    identical(x.at[i].add(2), np.float32([1, 7, 3]))
    identical(x.at[i].multiply(2), np.float32([1, 8, 2]))
    identical(x.at[i].divide(2), np.float32([1, 0.125, 0.5]))
    identical((x + 1).at[i].power(2), np.float32([2, 2**8, 2**2]))
    identical((x + 1).at[i].apply(lambda v: v * 3), np.float32([2, 54, 6]))


def test_divide_power_apply_on_slices() -> None:
    divided, powers, negated = A.copy(), A.copy(), A.copy()
    divided[1:, ::2] /= 4
    powers[0, 0] **= 2
    negated[2] *= -1
    identical(X.at[1:, ::2].divide(4), divided)
    identical(X.at[0, 0].power(2), powers)
    identical(X.at[2].apply(xp.negative), negated)


def test_a_loop_over_integers_compiles_once() -> None:
    x = xp.asarray(np.zeros(17, np.float32))
    with counting() as counter:
        for i in range(17):
            x = x.at[i].set(float(i))
    identical(x, np.arange(17, dtype=np.float32))
    assert counter[monitoring.COMPILE] == 1


PICKED = np.array([2, 0])
SLIDING: dict[str, Callable[[int], Any]] = {
    "slice": lambda i: np.s_[i : i + 5],
    "from the end": lambda i: np.s_[i - 30 : i - 26],
    "in steps": lambda i: np.s_[i : i + 10 : 3],
    "backwards": lambda i: np.s_[i + 5 : i + 1 : -1],
    "backwards in steps": lambda i: np.s_[i + 9 : i + 1 : -4],
    "of one": lambda i: np.s_[i : i + 1],
    "two axes": lambda i: np.s_[i : i + 5, i % 2 : i % 2 + 2],
    "beside an integer": lambda i: np.s_[i : i + 5, i % 3],
    "beside a new axis": lambda i: np.s_[None, i : i + 5],
    "behind an ellipsis": lambda i: np.s_[..., i % 2 : i % 2 + 2],
    "beside an array": lambda i: np.s_[i : i + 5, PICKED],
    "beside a mask": lambda i: np.s_[i : i + 10 : 3, np.array([True, False, True, False])],
    "array and integer": lambda i: np.s_[i, PICKED],
}
METHODS = ["set", "add", "multiply", "min", "max", "divide", "power", "apply", "get"]


@pytest.mark.parametrize(
    ("name", "how"), some_of([(name, how) for name in SLIDING for how in METHODS], 30)
)
def test_one_program_for_all_starts_of_one_length(name: str, how: str) -> None:
    host = np.arange(1, 121, dtype=np.float32).reshape(30, 4)
    x, key = xp.asarray(host), SLIDING[name]
    _update(x, how, key(0))
    with counting() as counts:
        found = [_update(x, how, key(i)) for i in range(1, 12)]
    assert counts[monitoring.COMPILE] == 0
    for i, result in enumerate(found, 1):
        np.testing.assert_allclose(np.asarray(result), _update_host(host, how, key(i)), rtol=1e-6)


def _update(x: Any, how: str, key: Any) -> Any:
    if how == "apply":
        return x.at[key].apply(xp.negative)
    return x.at[key].get() if how == "get" else getattr(x.at[key], how)(np.float32(2))


def _update_host(host: np.ndarray[Any, Any], how: str, key: Any) -> np.ndarray[Any, Any]:
    if how == "get":
        return host[key]
    result = host.copy()
    old = host[key]
    result[key] = {
        "set": lambda: np.full_like(old, 2),
        "add": lambda: old + 2,
        "multiply": lambda: old * 2,
        "min": lambda: np.minimum(old, 2),
        "max": lambda: np.maximum(old, 2),
        "divide": lambda: old / 2,
        "power": lambda: old**2,
        "apply": lambda: -old,
    }[how]()
    return result


@pytest.mark.parametrize("name", SLIDING)
def test_one_program_to_read_all_starts_of_one_length(name: str) -> None:
    host = np.arange(120, dtype=np.float32).reshape(30, 4)
    x, key = xp.asarray(host), SLIDING[name]
    x[key(0)]
    with counting() as counts:
        for i in range(1, 12):
            np.testing.assert_array_equal(np.asarray(x[key(i)]), host[key(i)])
    assert counts[monitoring.COMPILE] == 0


def test_positions_out_of_bounds_are_left_out_or_clipped() -> None:
    x = xp.asarray(np.zeros(3, np.float32))
    i = np.array([3, -4, 0, -1])
    identical(x.at[i].add(1), np.float32([1, 0, 1]))
    identical(x.at[i].add(1, mode="clip"), np.float32([2, 0, 2]))
    beyond = xp.asarray(np.int32(5))
    identical(x.at[beyond].set(1), np.zeros(3, np.float32))
    identical(x.at[beyond].set(1, mode="clip"), np.float32([0, 0, 1]))
    identical(x.at[xp.asarray(np.int32(-1))].set(1), np.float32([0, 0, 1]))


def test_get() -> None:
    x = xp.asarray(np.arange(3, dtype=np.float32))
    i = np.array([1, 3, -4, -1])
    identical(x.at[i].get(), np.float32([1, 2, 0, 2]))
    identical(x.at[i].get(mode="fill"), np.float32([1, np.nan, np.nan, 2]))
    identical(x.at[i].get(fill_value=-1), np.float32([1, -1, -1, 2]))
    identical(X.at[..., i].get(mode="wrap"), A[..., [1, 3, 1, 4]])
    five = xp.asarray(np.int32(5))
    identical(x.at[five].get(mode="fill", fill_value=9), np.float32(9))
    identical(x.at[1:].get(), np.float32([1, 2]))


def test_an_integer_out_of_bounds_follows_the_mode_as_in_jax() -> None:
    """Without a mode it raises; see `test_wrong_shapes_indices_and_modes_are_refused`."""

    def calls(x: Any) -> list[Any]:
        return [
            result
            for mode, i in product(["fill", "clip", "drop"], [4, 100, -4, -5, -100])
            for result in (
                x.at[i].get(mode=mode),
                x.at[i].set(9, mode=mode),
                x.reshape(2, 2).at[:, i].add(1, mode=mode),
            )
        ]

    a = np.float32([1, 2, 3, 4])
    found = zip(calls(xp.asarray(a)), plugrt.jit(calls)(a), jax.jit(calls)(a), strict=True)
    for eager, jitted, expected in found:
        identical(eager, np.asarray(expected))
        identical(jitted, np.asarray(expected))


def test_masks_under_tracing() -> None:
    identical(traced(lambda x: x.at[x > 30].set(0))(X), np.where(A > 30, np.float32(0), A))
    rows = traced(lambda x: x.at[x[:, :, 0] > 20].add(xp.asarray(np.arange(5, dtype=np.float32))))
    expected = A.copy()
    expected[A[:, :, 0] > 20] += np.arange(5)
    identical(rows(X), expected)
    with pytest.raises(DataDependentShape):
        traced(lambda x: x.at[x > 30].set(xp.asarray(np.arange(29.0, dtype=np.float32))))(X)


def test_values_of_a_higher_kind_are_refused() -> None:
    integers = xp.asarray(np.arange(3))
    with pytest.raises(DtypeError, match="values of dtype float32 for x of dtype int64"):
        integers.at[0].set(1.5)
    with pytest.raises(DtypeError, match="complex"):
        X.at[0].add(1j)
    with pytest.raises(DtypeError, match="divide got x of dtype int64"):
        integers.at[0].divide(2)
    identical(X.at[0, 0, 0].set(np.float64(0.5))[0, 0, :2], np.float32([0.5, 1]))


def test_wrong_shapes_indices_and_modes_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"shape \(3,\) does not broadcast to the shape \(4, 5\)"):
        X.at[0].set(np.zeros(3, np.float32))
    with pytest.raises(ShapeError, match=r"shape \(2,\).*\(5,\).*boolean index of shape \(3, 4\)"):
        X.at[MASK[:, :, 0]].set(np.zeros(2, np.float32))
    with pytest.raises(InvalidIndex, match="out of bounds"):
        X.at[3].set(0)
    with pytest.raises(ArgumentError, match="mode is 'sideways'"):
        X.at[0].set(0, mode="sideways")
    with pytest.raises(ArgumentError, match="mode is 'sideways'"):
        X.at[[0]].get(mode="sideways")
    with pytest.raises(ShapeError, match="keep the shape"):
        X.at[0].apply(lambda v: 1.0)
    with pytest.raises(TypeError):
        X.at[0].set(0, nosuch=1)
