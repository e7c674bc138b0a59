"""Keys of static values."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from plugrt.execution.launches.flat_calls import static_key

DIFFERENT: list[Any] = [
    1, 1.0, True, 1 + 0j, 0, 0.0, -0.0, False, (1,), (1.0,), (True,), ((0.0,),), ((-0.0,),), "1",
    b"1", None, (), float("nan"), complex(0, -0.0), 0j, frozenset({1}),
    [1], [True], [[1]], {"a": 1}, {"a": True}, {1: 1}, {True: 1}, np.array([1]), np.array([True]),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b"), [*itertools.combinations(range(len(DIFFERENT)), 2)])
def test_values_that_a_function_can_tell_apart(a: int, b: int) -> None:
    assert static_key(DIFFERENT[a]) != static_key(DIFFERENT[b])


def test_equal_values_have_equal_keys() -> None:
    for make in (lambda: float("nan"), lambda: (1, (2.0, "a")), lambda: 10**30, lambda: "text"):
        one, two = static_key(make()), static_key(make())
        assert (one, hash(one)) == (two, hash(two))
