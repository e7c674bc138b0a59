"""Warm calls: how few Python functions they run, and that each finds its own program."""

from __future__ import annotations

import sys
import weakref
from collections import OrderedDict
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt.errors import DeletedBuffer


def python_calls(call: Callable[[], object]) -> list[str]:
    """Returns the names of the Python functions that a warm call runs, comprehensions aside."""
    seen: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_name
        if event == "call" and not name.startswith("<listcomp"):  # no function since Python 3.12
            seen.append(name)

    for _ in range(3):
        call()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return seen[1:]  # without `call` itself


def test_a_warm_call_is_four_python_calls() -> None:
    add = plugrt.jit(lambda a, b: a + b)
    x = plugrt.device_put(np.ones(3, np.float32))
    assert len(python_calls(lambda: add(x, x))) <= 4


@pytest.mark.parametrize("keys", [["a", "b"], ["b", "a"], [f"k{i}" for i in range(40)], [2, 1]])
def test_a_warm_call_with_a_dict_of_arrays_is_five(keys: list[Any]) -> None:
    double = plugrt.jit(lambda d: {k: v * 2 for k, v in d.items()})
    arrays = {k: plugrt.device_put(np.full(3, i, np.float32)) for i, k in enumerate(keys)}
    assert len(python_calls(lambda: double(arrays))) <= 5
    for values in (arrays, dict(reversed(arrays.items())), arrays):
        found = double(values)
        assert list(found) == sorted(keys)
        assert {k: float(v[0]) for k, v in found.items()} == {
            k: 2.0 * i for i, k in enumerate(keys)
        }


def test_a_dict_of_whatever_else_goes_beside_one_of_arrays() -> None:
    @plugrt.jit
    def total(d: Any) -> Any:
        return sum(map(xp.sum, plugrt.tree.leaves(d)), xp.asarray(0.0))

    x = plugrt.device_put(np.ones(3, np.float32))
    host = np.ones(3, np.float32)
    for _ in range(2):
        for d, wanted in [
            ({}, 0), ({"a": x}, 3), ({"b": x}, 3), ({"a": x, "b": x}, 6), ({"a": x, "b": host}, 6),
            ({"a": host, "b": x}, 6), ({"a": x, "b": 2.0, "c": x}, 8), ({"a": {"b": x}}, 3),
            ({"a": [x, host]}, 6), (OrderedDict(a=x), 3), ({"a": x, "b": None, "c": x}, 6),
        ]:  # fmt: skip
            assert float(total(d)) == wanted


def test_a_dict_with_a_deleted_array_is_refused_by_name() -> None:
    double = plugrt.jit(lambda d: {k: v * 2 for k, v in d.items()})
    arrays = {k: plugrt.device_put(np.ones(3, np.float32)) for k in "abc"}
    double(arrays)
    arrays["b"].delete()
    with pytest.raises(DeletedBuffer, match="'b'"):
        double(arrays)


@pytest.mark.parametrize("keys", [["a", "b", "c"], ["c", "a", "b"], [3, 1, 2]])
@pytest.mark.parametrize("passed", [False, True])
def test_results_in_a_dict_have_the_order_of_the_function(keys: list[Any], passed: bool) -> None:
    known, same, plus = keys
    f = plugrt.jit(
        lambda x: {known: 3 if passed else x * 3, same: x if passed else x * 1, plus: x + 1}
    )
    x = plugrt.device_put(np.ones(2, np.float32))
    for _ in range(3):
        found = f(x)
        assert [*found] == keys
        np.testing.assert_array_equal(np.asarray(found[known]), 3 if passed else [3, 3])
        np.testing.assert_array_equal(np.asarray(found[same]), [1, 1])
        np.testing.assert_array_equal(np.asarray(found[plus]), [2, 2])


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("referred", [False, True])
def test_donating_takes_the_memory_unless_another_array_has_it(
    shared: bool, referred: bool
) -> None:
    step = plugrt.jit(lambda a, b: (a + b, a - b), donate_argnums=0)
    other = plugrt.device_put(np.ones(3, np.float32))
    for _ in range(3):
        state = plugrt.device_put(np.full(3, 2, np.float32))
        pointer = state.unsafe_buffer_pointer()
        reference = weakref.ref(state) if referred else None
        same = plugrt.jit(lambda x: x)(state) if shared else None
        results = step(state, other)
        assert state.is_deleted()
        taken = pointer in [result.unsafe_buffer_pointer() for result in results]
        assert taken is not shared
        assert [float(result[0]) for result in results] == [3, 1]
        if same is not None:
            np.testing.assert_array_equal(np.asarray(same), np.full(3, 2))
        assert reference is None or reference() is state
