"""Calls read the settings and their arguments once, also before a program exists."""

from __future__ import annotations

import functools
import sys
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import plugrt
import plugrt.array_api as xp
from plugrt.execution.launches import call_object, flat_calls
from support.native_core import IN_C, runs_in_c

X = plugrt.device_put(np.ones(2, np.float32))
opened: Counter[str] = Counter()


class Box:
    """A container that its flatten function changes."""

    def __init__(self, *parts: Any) -> None:
        self.parts = [*parts]


class Named(Box):
    """Like `Box`, with a flatten function that also names the parts."""


class Pair(NamedTuple):
    """A named tuple."""

    a: Any
    b: Any


def open_box(box: Box) -> tuple[Iterator[Any], Any]:
    opened["box"] += 1
    parts = [*box.parts]
    box.parts.reverse()
    return iter(parts), type(box)


def open_named(box: Named) -> Any:
    return (*open_box(box), iter("abcdef"[: len(box.parts)]))


def close(cls: Any, parts: Any) -> Any:
    return cls(*parts)


plugrt.tree.register_node(Box, open_box, close)
plugrt.tree.register_node(Named, open_named, close)


def first_less_last(given: Any, *more: Any, **named: Any) -> Any:
    """Returns the first part minus the last; other arguments are returned."""
    if isinstance(given, Box):
        return given.parts[0] - given.parts[-1]
    return given


ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "array": (X,),
    "host": (np.ones(2, np.float32), 2.0, np.float32(1)),
    "dict": ({"b": X, "a": [X, None]},),
    "ordered": (OrderedDict(b=X, a=X),),
    "deque": (deque([X], 3), Pair(X, 2.0)),
    "box": (Box(X, X),),
    "named": (Named(X, X), X),
}


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts the readings of the settings and of the arguments in Python."""
    found: Counter[str] = Counter()

    def counting(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            found[name] += 1
            return function(*given)

        return call

    monkeypatch.setattr(call_object, "_token", counting("token", call_object._token))
    monkeypatch.setattr(flat_calls, "_open_all", counting("arguments", flat_calls._open_all))
    opened.clear()
    return found


def check_readings(readings: Counter[str], calls: int) -> None:
    """Checks that Python read nothing if the core makes the calls, else the settings once each."""
    if IN_C:
        assert not readings
    else:
        assert readings["token"] == calls


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_function_reads_a_call_once(name: str, static: bool, readings: Counter[str]) -> None:
    jitted = plugrt.jit(first_less_last, static_argnames="k" if static else None)
    named = {"k": 3} if static else {}
    boxes = sum(isinstance(x, Box) for x in ARGUMENTS[name])
    for n in range(1, 4):
        jitted(*ARGUMENTS[name], **named)
        assert opened["box"] == n * boxes
        check_readings(readings, n)


@pytest.mark.parametrize("name", ["box", "named"])
def test_flattening_a_container_does_not_change_the_call(name: str) -> None:
    given = ARGUMENTS[name][0].__class__(X, X * 3)
    found = [plugrt.jit(first_less_last)(given) for _ in range(2)]
    assert [float(x[0]) for x in found] == [-2, 2]  # the parts as they were before each call


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_compiled_program_reads_a_call_once(name: str, readings: Counter[str]) -> None:
    program = plugrt.jit(first_less_last).lower(*ARGUMENTS[name]).compile()
    readings.clear()
    opened.clear()
    boxes = sum(isinstance(x, Box) for x in ARGUMENTS[name])
    for n in range(1, 4):
        program(*ARGUMENTS[name])
        assert opened["box"] == n * boxes
        check_readings(readings, n)


def test_metadata_without_a_hash_are_read_once() -> None:
    class Listed(Box):
        """Has a list as its metadata."""

    def open_listed(box: Box) -> Any:
        opened["listed"] += 1
        return box.parts, [1]

    plugrt.tree.register_node(Listed, open_listed, lambda _, parts: Listed(*parts))
    opened.clear()
    assert plugrt.jit(first_less_last)(Listed(X, X)).tolist() == [0, 0]
    assert opened["listed"] == 1


CALLS: dict[str, Callable[[], Any]] = {
    "pmap": functools.partial(plugrt.pmap(lambda x: x + 1), X),
    "an operation": lambda: xp.add(X, np.ones(2, np.float32)),
    "an operation with static arguments": lambda: xp.sum(X, axis=0, keepdims=True),
    "an operation of a list": lambda: xp.concat([X, X]),
    "an operator": lambda: X + X,
    "an operator with a scalar": lambda: 2.0 * X,
    "indexing": lambda: X[:1],
}


@pytest.mark.parametrize("name", CALLS)
def test_all_other_calls_are_read_once(name: str, readings: Counter[str]) -> None:
    for n in range(1, 4):
        CALLS[name]()
        check_readings(readings, n)


@runs_in_c
def test_a_moved_argument_does_not_take_a_call_out_of_the_core() -> None:
    """The backend's function copies the argument; the core launches and wraps."""
    first, second = plugrt.devices()[:2]
    committed, free = plugrt.device_put(X, second), xp.ones(2, dtype=xp.float32)
    function = plugrt.jit(lambda a, b: a + b)
    assert free.sharding.device is first
    for _ in range(3):
        function(committed, free)
    called: list[str] = []
    sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_filename))
    try:
        result = function(committed, free)
    finally:
        sys.setprofile(None)
    assert not [name for name in called if name.endswith("launches/loaded_program.py")]
    assert (result.tolist(), result.sharding.device) == ([2, 2], second)
