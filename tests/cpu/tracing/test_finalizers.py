"""Calls by finalisers that Python runs during a trace do not become a part of the trace."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np

from plugrt import array_api as xp
from plugrt import jit

X = np.ones(8, np.float32)


class Cycle:
    """A reference cycle, whose finaliser calls a function."""

    def __init__(self, call: Any) -> None:
        self.call = call
        self.me = self

    def __del__(self) -> None:
        self.call()


def test_a_finalizer_runs_as_outside_of_the_trace() -> None:
    held = xp.asarray(X)
    differ = jit(lambda a, b: a - 2 * b)
    differ(held, held)
    seen: list[Any] = []

    def call() -> None:
        seen.append(differ(held, held).tolist())  # of a tracer this would fail

    def traced(a: Any) -> Any:
        Cycle(call)
        gc.collect()
        return a + 1

    text = jit(traced).lower(X).as_text()
    assert seen == [[-1.0] * 8]
    assert "add" in text
    assert "subtract" not in text


def test_finalizers_may_run_wherever_a_trace_is() -> None:
    held = xp.asarray(X)
    differ = jit(lambda a, b: a - 2 * b)
    differ(held, held)
    results: list[Any] = []
    threshold = gc.get_threshold()
    count = 40
    try:
        for i in range(count):
            gc.disable()
            Cycle(lambda: results.append(differ(held, held).tolist()))
            gc.set_threshold(1 + 2 * i)  # each collection begins a little later
            gc.enable()
            lowered = jit(lambda a: a * i + 1).lower(X)  # noqa: B023
            gc.set_threshold(*threshold)
            gc.collect()
            assert "subtract" not in lowered.as_text()
    finally:
        gc.set_threshold(*threshold)
        gc.enable()
    assert results == [[-1.0] * 8] * count
