"""The core keeps the runner of a function's last call, for those that are like it and no others."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from plugrt import (
    config,
    jit,  # tells the core which threads trace
)
from plugrt.execution.arrays.arguments import quick_avals
from plugrt.execution.launches.caches import RunnerCache
from plugrt.native.native_core import core
from support.native_core import runs_in_c

assert jit
pytestmark = runs_in_c
CallsOfCore: Any = object if core is None else core.Calls
Run = Callable[[Sequence[Any]], Any]


class Function(CallsOfCore):  # type: ignore[misc]
    """Whose calls without a runner give "Python"."""

    def __init__(
        self, runners: Any, numbers: Sequence[int] = (), names: Sequence[str] = ()
    ) -> None:
        self._runners = runners
        self._set_statics(frozenset(numbers), frozenset(names))

    def _call_in_python(self, *args: Any, **kwargs: Any) -> str:
        return "Python"


def key_of(values: Sequence[Any], structure: Any = None) -> tuple[Any, ...]:
    avals = quick_avals(values)
    assert avals is not None
    return (config.token(), structure, *avals)


def warm(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Calls it until its runner is kept."""
    for _ in range(3):
        found = function(*args, **kwargs)
    return found


def test_a_runner_is_kept_until_its_dict_loses_it() -> None:
    class Runner:
        def __call__(self, values: Sequence[Any]) -> Any:
            return values

    runners = RunnerCache(2)
    function, key = Function(runners), key_of([2.0])
    runners.keep(key, Runner())
    kept = weakref.ref(runners[key])
    assert warm(function, 2.0) == (2.0,)
    dict.__delitem__(runners, key)  # of which the core is not told
    assert kept() is not None
    assert function(3.0) == (3.0,)
    runners.keep(0, Runner())
    runners.keep(1, Runner())
    runners.keep(2, Runner())  # evicts one
    assert kept() is None
    assert function(3.0) == "Python"
    runners.keep(key, Runner())
    kept = weakref.ref(runners[key])
    warm(function, 2.0)
    runners.clear()
    assert kept() is None
    assert function(3.0) == "Python"
    runners.keep(key, Runner())
    kept = weakref.ref(runners[key])
    warm(function, 2.0)
    function._runners = {}
    del runners
    gc.collect()
    assert kept() is None
    assert function(3.0) == "Python"


@pytest.mark.parametrize(
    ("last", "others"),
    [
        (((2.0, 3.0), {}), [((2.0,), {}), ((2.0, 3), {}), ((2.0, 3.0, 4.0), {}), ((2.0, "3"), {}),
                            ((2.0, [3.0]), {}), ((2.0,), {"b": 3.0})]),
        (((2.0,), {"b": 1.0, "c": 2}), [((2.0,), {"c": 1, "b": 2.0, "d": 1}), ((2.0,), {"b": 1.0}),
                                        ((2.0,), {"b": 1.0, "d": 2}), ((2.0, 1.0), {"c": 2}),
                                        ((2.0,), {"b": 1.0, "c": 2.0})]),
        (((2.0,), {"n": 1}), [((2.0,), {"n": True}), ((2.0,), {"n": 1.0}), ((2.0,), {"n": 2}),
                              ((2.0,), {}), ((2.0,), {"n": None}), ((2.0, 1), {})]),
    ],
)  # fmt: skip
def test_a_call_that_differs_from_the_last_one_is_another(last: Any, others: Any) -> None:
    (args, kwargs), runners = last, dict[Any, Run]()
    function = Function(runners, (), ["n"])
    values = (*args, *(value for name, value in kwargs.items() if name != "n"))
    marks = [(type(v), v) if n == "n" else None for n, v in kwargs.items()]
    structure = (len(args), tuple(kwargs), *[None] * len(args), *marks) if kwargs else None
    key = key_of(values, structure)
    runners[key] = tuple
    assert warm(function, *args, **kwargs) == values
    runners.clear()
    assert function(*args, **kwargs) == values  # it is kept
    runners[key] = tuple  # the avals of other calls may take the places of those of this one
    for other_args, other_kwargs in others:
        assert function(*other_args, **other_kwargs) == "Python"
        assert function(*args, **kwargs) == values
    with config.override(enable_x64=not config.enable_x64):
        assert function(*args, **kwargs) == "Python"
    assert function(*args, **kwargs) == values
    before = config.enable_x64
    try:
        config.update("enable_x64", not before)  # for every thread
        found: list[Any] = [function(*args, **kwargs)]
        thread = threading.Thread(target=lambda: found.append(function(*args, **kwargs)))
        thread.start()
        thread.join()
        assert found == ["Python", "Python"]
    finally:
        config.update("enable_x64", before)
    assert function(*args, **kwargs) == values


def test_a_static_value_that_may_change_is_looked_up_each_time() -> None:
    class Value:
        number = 1

        def __hash__(self) -> int:
            return self.number

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Value) and other.number == self.number

    value, same = Value(), Value()
    runners: dict[Any, Run] = {}
    function = Function(runners, [0])
    runners[key_of([2.0], (2, (), (Value, same), None))] = tuple
    assert warm(function, value, 2.0) == (2.0,)
    value.number = 2
    assert function(value, 2.0) == "Python"


def test_what_python_refuses_in_its_own_words_is_left_to_it() -> None:
    class Value:
        def __init__(self, error: BaseException) -> None:
            self.error = error

        def __hash__(self) -> int:
            raise self.error

    function = Function({}, [0])
    for error in (TypeError(), MemoryError(), RecursionError()):
        assert function(Value(error), 2.0) == "Python"
    for other in (LookupError(), KeyboardInterrupt()):
        with pytest.raises(type(other)):
            function(Value(other), 2.0)
    deep: list[Any] = []
    for _ in range(200_000):  # more than there is stack for
        deep = [deep]
    assert function(1, deep) == "Python"


def test_an_error_of_a_runner_keeps_its_frames() -> None:
    def fail(values: Any) -> Any:
        raise LookupError(values)

    function = Function({key_of([2.0]): fail})
    for _ in range(4):  # found in the dict, and as the last one
        with pytest.raises(LookupError) as raised:
            function(2.0)
        assert raised.traceback[-1].name == "fail"


def test_calls_left_to_python_leave_no_references() -> None:
    leaf, avals = object(), quick_avals([2.0])
    assert avals is not None
    [aval] = avals
    nested = ([[leaf]], {"a": (leaf,)})
    function = Function({})

    def calls() -> None:
        assert function(2.0, np.zeros((1,) * 9)) == "Python"  # of a higher rank than the core takes
        assert function(*nested, k=[leaf]) == function([leaf], {"a": leaf}) == "Python"

    calls()
    counts = [*map(sys.getrefcount, (aval, leaf))]
    for _ in range(3):
        calls()
    assert [*map(sys.getrefcount, (aval, leaf))] == counts
