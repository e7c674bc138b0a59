"""A program over several devices calls a function once for all devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from plugrt.callbacks.host_callbacks import NumberedCallback
from plugrt.callbacks.shared_callbacks import SharedCallback, share_callbacks
from plugrt.errors import Internal
from plugrt.execution.executables.tracked_executable import track_launches
from plugrt.interface import CompileOptions, LoadedExecutable, Program
from support.fake_client import FakeClient


def numbered(function: Callable[..., Any], **options: Any) -> NumberedCallback:
    return NumberedCallback(function, "'f' of a test", has_effect=False, **options)


def call(callback: SharedCallback, device: int, *values: Any) -> Any:
    return callback([np.array([device], np.uint32), *map(np.asarray, values)])


def test_the_nth_calls_of_all_devices_are_one() -> None:
    seen: list[float] = []
    shared = SharedCallback(numbered(lambda v: (seen.append(float(v)), [v + 1])[1]), 3)
    assert [float(call(shared, d, 5)[0]) for d in (2, 0)] == [6, 6]
    assert float(call(shared, 2, 7)[0]) == 8  # device 2's second call, before device 1's first
    assert [float(call(shared, 1, v)[0]) for v in (5, 7)] == [6, 8]
    assert float(call(shared, 0, 7)[0]) == 8
    assert seen == [5, 7]
    assert shared._calls == {}  # the result is not kept


def test_a_failure_is_that_of_each_device() -> None:
    def refuse() -> Any:
        raise KeyError("no more")

    shared = SharedCallback(numbered(refuse), 2)
    for device in (0, 1):
        with pytest.raises(Internal, match=r"'f' of a test raised KeyError: 'no more'"):
            call(shared, device)


def test_a_launch_forgets_the_results_of_the_previous_one() -> None:
    shared = SharedCallback(numbered(lambda v: [v]), 2)
    call(shared, 0, 1)
    shared.begin()
    assert [float(call(shared, d, 2)[0]) for d in (1, 0)] == [2, 2]


def test_which_are_shared() -> None:
    plain, parts, split, single = (
        numbered(list, **options)
        for options in ({}, {"of_parts": True}, {"partitioned": True}, {"one_device": True})
    )
    renumbered, made = share_callbacks({c.number: c for c in (plain, parts, split, single)}, 4)
    [(old, new)] = renumbered.items()
    assert old == plain.number
    assert isinstance(made.pop(new), SharedCallback)
    assert [*made.values()] == [parts, split, single]


def test_a_launch_waits_for_the_one_before() -> None:
    order: list[str] = []
    shared = SharedCallback(numbered(lambda v: [v]), 2)

    class Loaded(LoadedExecutable):
        client = FakeClient()
        executable = property(lambda self: SimpleNamespace(num_replicas=1, num_partitions=1))
        addressable_devices = property(lambda self: [])

        def execute_with_wait(
            self, arguments: Any, options: Any = None
        ) -> tuple[Sequence[Any], Callable[[], None]]:
            number = sum(line.startswith("launch") for line in order)
            order.append(f"launch {number}")
            call(shared, 0, number)  # a call that the other device does not make
            return [], lambda: order.append(f"end {number}")

        def execute(self, arguments: Any, options: Any = None) -> Sequence[Any]:
            raise AssertionError

        def delete(self) -> None: ...

        def is_deleted(self) -> bool:
            return False

    tracked = track_launches(
        Loaded(), Program(b"", callbacks={shared.number: shared}), CompileOptions()
    )
    tracked.execute([])
    tracked.execute([])
    assert order.index("end 0") < order.index("launch 1")
    assert shared._made[0] == 1
