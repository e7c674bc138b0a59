"""NumPy arrays that functions close over: put once for a trace and a device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from plugrt import device_put, device_put_replicated, devices, jit, lax, pmap
from support.ops import add, mul
from support.traffic import Traffic

SIZE = 2000
BIG = np.arange(SIZE, dtype=np.float32)


def times_put(puts: Traffic) -> Counter[int]:
    """Returns the number of puts of an array of `SIZE`, by the device's id."""
    return Counter(device.id for array, device in puts.arrays if array.shape == (SIZE,))


def _used_often() -> Callable[[Any], Any]:
    return jit(lambda x: add(mul(add(x, BIG), BIG), BIG))


def _inner_and_outer() -> Callable[[Any], Any]:
    inner = jit(lambda x: mul(x, BIG))
    return jit(lambda x: add(inner(x), BIG))


def _outer_before_inner() -> Callable[[Any], Any]:
    inner = jit(lambda x: mul(x, BIG))
    return jit(lambda x: add(inner(add(x, BIG)), BIG))


def _three_levels() -> Callable[[Any], Any]:
    return jit(lambda x: jit(lambda y: add(jit(lambda z: add(z, BIG))(y), BIG))(add(x, BIG)))


def _control_flow() -> Callable[[Any], Any]:
    def branches(x: Any) -> Any:
        return lax.cond(True, lambda y: add(y, BIG), lambda y: mul(y, BIG), x)

    return jit(lambda x: lax.fori_loop(0, 3, lambda _, y: add(branches(y), BIG), x))


def _returned() -> Callable[[Any], Any]:
    return jit(lambda x: (add(x, BIG), BIG))


CASES = [
    _used_often, _inner_and_outer, _outer_before_inner, _three_levels, _control_flow, _returned
]  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_once_however_often_it_is_used_and_called(
    case: Callable[[], Callable[[Any], Any]], puts: Traffic
) -> None:
    f, x = case(), device_put(np.ones(SIZE, np.float32))
    puts.clear()
    for _ in range(3):
        f(x)
    assert times_put(puts) == {0: 1}
    f(device_put(x, devices()[3]))
    assert times_put(puts) == {0: 1, 3: 1}


def test_once_for_a_compiled_object_and_calls(puts: Traffic) -> None:
    f, x = _inner_and_outer(), device_put(np.ones(SIZE, np.float32))
    puts.clear()
    f.lower(x).compile()(x)  # type: ignore[attr-defined]
    f(x)
    assert times_put(puts) == {0: 1}


def test_once_for_each_device_of_pmap(puts: Traffic) -> None:
    inner = jit(lambda y: mul(y, BIG))
    f = pmap(lambda x: add(add(inner(x), BIG), BIG))
    x = device_put_replicated(np.ones(SIZE, np.float32), devices())
    puts.clear()
    for _ in range(3):
        np.testing.assert_array_equal(f(x)[1], 3 * BIG)
    assert times_put(puts) == {d.id: 1 for d in devices()}


def test_each_trace_reads_the_present_contents_of_an_array() -> None:
    values, x = np.zeros(SIZE, np.float32), device_put(np.ones(SIZE, np.float32))
    inner = jit(lambda y: mul(y, values))
    np.testing.assert_array_equal(inner(x), np.zeros(SIZE))
    values[:] = 2
    both = jit(lambda y: (inner(y), mul(y, values), inner(y)))  # `inner` is not traced again
    reverse = jit(lambda y: (mul(y, values), inner(y)))
    for found in (both(x)[0], both(x)[2], reverse(x)[1]):
        np.testing.assert_array_equal(found, np.zeros(SIZE))
    for found in (both(x)[1], reverse(x)[0]):
        np.testing.assert_array_equal(found, np.full(SIZE, 2))
