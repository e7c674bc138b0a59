"""NumPy arrays that functions close over: put once for a trace and a device."""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from plugrt import device_put, device_put_replicated, devices, jit, lax, pmap
from plugrt.execution.transfers.host_values import HostConstant
from support.ops import add, mul
from support.puts import Puts

SIZE = 2000
BIG = np.arange(SIZE, dtype=np.float32)


def times_put(puts: Puts) -> Counter[int]:
    """Returns how often an array of that size was put on each device, by id."""
    return Counter(device.id for array, device in puts if array.shape == (SIZE,))


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
    case: Callable[[], Callable[[Any], Any]], puts: Puts
) -> None:
    f, x = case(), device_put(np.ones(SIZE, np.float32))
    puts.clear()
    for _ in range(3):
        f(x)
    assert times_put(puts) == {0: 1}
    f(device_put(x, devices()[3]))
    assert times_put(puts) == {0: 1, 3: 1}


def test_once_for_a_compiled_object_and_calls(puts: Puts) -> None:
    f, x = _inner_and_outer(), device_put(np.ones(SIZE, np.float32))
    puts.clear()
    f.lower(x).compile()(x)  # type: ignore[attr-defined]
    f(x)
    assert times_put(puts) == {0: 1}


def test_once_for_an_inner_function_of_five_outer_ones(puts: Puts) -> None:
    inner, x = jit(lambda y: mul(y, BIG)), device_put(np.ones(SIZE, np.float32))
    outer = [jit(lambda y, k=k: add(inner(y), k)) for k in range(5)]
    puts.clear()
    for k, f in enumerate(outer):
        np.testing.assert_array_equal(f(x), BIG + k)
    np.testing.assert_array_equal(inner(x), BIG)
    assert times_put(puts) == {0: 1}


def test_once_for_each_device_of_pmap(puts: Puts) -> None:
    inner = jit(lambda y: mul(y, BIG))
    f = pmap(lambda x: add(add(inner(x), BIG), BIG))
    x = device_put_replicated(np.ones(SIZE, np.float32), devices())
    puts.clear()
    for _ in range(3):
        np.testing.assert_array_equal(f(x)[1], 3 * BIG)
    assert times_put(puts) == {d.id: 1 for d in devices()}


def test_what_an_array_holds_at_each_trace_counts() -> None:
    values, x = np.zeros(SIZE, np.float32), device_put(np.ones(SIZE, np.float32))
    inner = jit(lambda y: mul(y, values))
    np.testing.assert_array_equal(inner(x), np.zeros(SIZE))
    values[:] = 2
    both = jit(lambda y: (inner(y), mul(y, values), inner(y)))  # the inner one is traced already
    reverse = jit(lambda y: (mul(y, values), inner(y)))
    for found in (both(x)[0], both(x)[2], reverse(x)[1]):
        np.testing.assert_array_equal(found, np.zeros(SIZE))
    for found in (both(x)[1], reverse(x)[0]):
        np.testing.assert_array_equal(found, np.full(SIZE, 2))


def test_contents_are_compared_bit_by_bit() -> None:
    values = np.array([np.nan, -0.0], np.float32)
    kept = HostConstant(values, values)
    assert kept.has_value(values)
    assert not kept.has_value(np.array([np.nan, 0.0], np.float32))
    assert not kept.has_value(values[None])
    assert not kept.has_value(values.astype("f8"))
    assert HostConstant(values, values[::-1]).has_value(np.array([-0.0, np.nan], np.float32))
    values[:] = 0
    assert kept.source is values
    assert not kept.has_value(values)


def test_it_is_freed_with_the_programs() -> None:
    f = jit(lambda x: add(x, BIG))
    f(device_put(np.ones(SIZE, np.float32)))
    [staged] = f._pipeline.traces.values()
    constant = staged.plan.constants[0]
    placed = weakref.ref(constant.place(next(iter(constant._placed))))
    del staged, f
    gc.collect()
    assert placed() is None
    assert constant._placed == {}


def test_deleting_a_result_that_is_the_array_leaves_it_to_other_programs() -> None:
    inner, x = jit(lambda y: (mul(y, BIG), BIG)), device_put(np.ones(SIZE, np.float32))
    first, second = jit(lambda y: inner(y)), jit(lambda y: inner(add(y, 0)))
    kept = second(x)[1]
    first(x)[1].delete()
    np.testing.assert_array_equal(kept, BIG)
    np.testing.assert_array_equal(first(x)[1], BIG)
