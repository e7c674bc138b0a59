"""The core's keys of static values equal Python's; mutable values are read at each call."""

from __future__ import annotations

import enum
import sys
from typing import Any, NamedTuple

import numpy as np
import pytest

from plugrt import (
    config,
    jit,  # sets the keys in the core
)
from plugrt.execution.arrays.arguments import quick_avals
from plugrt.execution.launches.flat_calls import static_key
from plugrt.native.native_core import core
from support.native_core import runs_in_c

assert jit
pytestmark = runs_in_c
CallsOfCore: Any = object if core is None else core.Calls


class Function(CallsOfCore):  # type: ignore[misc]
    """Has one static argument. Returns the other arguments, or "Python" if it has no runner."""

    def __init__(self, value: Any) -> None:
        avals = quick_avals([2.0])
        assert avals is not None
        self._runners = {(config.token(), (2, (), static_key(value), None), *avals): tuple}
        self._set_statics(frozenset([0]), frozenset())

    def _call_in_python(self, *args: Any) -> str:
        return "Python"

    def knows(self, value: Any) -> bool:
        found = self(value, 2.0)
        assert found in ((2.0,), "Python")
        return bool(found != "Python")

    def keep(self, value: Any) -> None:
        """Makes the core keep this call, and removes the runners, so that it finds no other."""
        for _ in range(3):
            assert self.knows(value)
        self._found = dict(self._runners)
        self._runners.clear()  # without notice to the core


class Pair(NamedTuple):
    a: Any
    b: Any


class Backwards(tuple[Any, ...]):
    def __iter__(self) -> Any:
        return reversed([*tuple.__iter__(self)])


class Number(float):
    def __repr__(self) -> str:
        return "a number"


class Kind(enum.Enum):
    A = 1


class Identity:
    """Equal to itself only, unless its class is changed."""


def deep(count: int) -> Any:
    return (1, deep(count - 1)) if count else 1.0


FUNCTION, IDENTITY, RECORD = (lambda: 0), Identity(), np.dtype([("a", "f4")])
LASTING: list[Any] = [
    1, True, 1.0, -0.0, 0.0, float("nan"), 1 + 0j, complex(0, -0.0), "1", b"1", None, (), (1,),
    (True,), (1.0,), (-0.0,), (0.0,), (float("nan"),), ((1,),), (1, ("a", b"a", None)), (1, 2),
    10**30, (10**30, 1j), FUNCTION, (FUNCTION, 1), len, [].append, float, Identity, (int, Identity),
    np.float32, np.add, np.dtype("f4"), (np.dtype("i4"), 1), deep(9), ..., range,
]  # fmt: skip
"""Values that the same object represents each time."""
OTHER: list[Any] = [
    IDENTITY, (IDENTITY,), RECORD, (1, RECORD), (Pair(1, 2.0),), Pair(1, 2.0), Pair(True, 2), sys,
    Backwards((1, 2.0)), (Backwards((1, 2)), 3), Number(3), (Number(3),), np.float64(1), Kind.A,
    np.float32(1), (np.float32(1),), frozenset({1}), deep(100), type("int", (int,), {})(1),
]  # fmt: skip
VALUES = [*LASTING, *OTHER]


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_keys_are_those_of_python(value: Any) -> None:
    for other in VALUES:
        assert Function(value).knows(other) is (static_key(other) == static_key(value)), other


@pytest.mark.parametrize("value", LASTING, ids=range(len(LASTING)))
def test_a_value_that_lasts_is_not_looked_up_again(value: Any) -> None:
    function = Function(value)
    function.keep(value)
    assert function.knows(value)
    for other in VALUES:
        if static_key(other) == static_key(value):
            assert function.knows(other), other
        else:
            assert not function.knows(other), other
            function._runners.update(function._found)
            function.keep(value)


@pytest.mark.parametrize(
    "text", ["10**30", "-1234.5", "-0.0", "'a' * 99", "(10**30, (0.0, 'b' * 99))"]
)
def test_numbers_and_texts_that_are_made_anew_are_not_looked_up_again(text: str) -> None:
    function = Function(eval(text))
    function.keep(eval(text))
    assert function.knows(eval(text))


@pytest.mark.parametrize("value", OTHER, ids=range(len(OTHER)))
def test_any_other_value_is_looked_up_each_time(value: Any) -> None:
    function = Function(value)
    function.keep(value)
    assert not function.knows(value)


def test_another_tuple_of_equal_values_is_the_same_value() -> None:
    two = ("a", 2.5)
    function = Function((1, two))
    function.keep((1, two))
    assert function.knows((1, (two[0], two[1])))
    equal = (int("1"), ("".join("a"), float("2.5")))
    assert function.knows(equal)
    for other in [
        (2, two), (1, ("b", 2.5)), (1, ("a", 2.25)), (1, ("a", 2)), (True, two), (1, [*two]),
        (1, two, 1), (1,), Pair(1, two), (1, Pair(*two)), 1, ((1, two),),
    ]:  # fmt: skip
        assert not function.knows(other)
        function._runners.update(function._found)
        function.keep((1, two))


def test_a_class_may_change_what_its_objects_are_equal_to() -> None:
    class Value:
        """Equal to itself only, at first."""

    value = Value()
    function = Function((value,))
    for _ in range(3):
        assert function.knows((value,))
    Value.__hash__ = lambda self: 7  # type: ignore[method-assign]
    assert not function.knows((value,))
    del Value.__hash__
    assert function.knows((value,))
    value.__class__ = Identity  # type: ignore[assignment]
    assert not function.knows((value,))
