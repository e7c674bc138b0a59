"""Launches of several parts: when one part's function fails, the calls of other parts end, too."""

from __future__ import annotations

import _thread
import logging
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from plugrt.callbacks.launch_watch import Watch, WatchedFunction
from plugrt.errors import FailedPrecondition, Internal
from plugrt.execution.executables.tracked_executable import Launched, WatchedLaunches
from support.watched_calls import at_calls


def raise_failure() -> str:
    raise Internal("it failed")


def call_in_parts(watch: Watch, functions: Sequence[WatchedFunction]) -> list[str]:
    """Makes a call for each part concurrently, after a failure; returns the results."""
    said: list[str] = []

    def call(function: WatchedFunction) -> None:
        try:
            said.append(function.call_watched(watch, lambda: "called", lambda: "zeros"))
        except Internal as error:
            said.append(error.message)

    threads = [threading.Thread(target=call, args=(each,)) for each in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return said


def failed(parts: int, **seconds: float) -> tuple[Watch, WatchedFunction]:
    watch, function = Watch(parts, **seconds), WatchedFunction()
    assert function.call_watched(watch, lambda: "called", lambda: "zeros") == "called"
    assert function.call_watched(watch, raise_failure, lambda: "zeros") == "zeros"
    return watch, function


def test_the_parts_may_come_to_their_end_by_themselves() -> None:
    watch, function = failed(3)
    assert call_in_parts(watch, [function] * 3) == ["zeros"] * 3


def test_all_parts_end_where_all_call_a_function() -> None:
    watch, function = failed(3, finishes=0, shortest=30)
    assert call_in_parts(watch, [function] * 3) == ["it failed"] * 3


def test_none_ends_while_another_may_wait_in_a_collective() -> None:
    watch, function = failed(3, finishes=0, shortest=0.01)
    assert call_in_parts(watch, [function] * 2) == ["zeros"] * 2
    # One part may be in two functions at once.
    assert call_in_parts(watch, [function, function, WatchedFunction()]) == ["zeros"] * 3


def test_a_launch_that_does_not_end_is_left(caplog: pytest.LogCaptureFixture) -> None:
    function, ends = WatchedFunction(), threading.Event()
    remembered: list[Any] = []

    def wait() -> None:
        ends.wait(60)

    def launch(arguments: Any, options: Any) -> Launched:
        watch = function.watch
        if watch is not None and not ends.is_set():
            function.call_watched(watch, raise_failure, lambda: "zeros")
        return [], wait

    launches = WatchedLaunches(launch, remembered.append, [function], 2, "f", left_after=0)
    with pytest.raises(Internal, match="it failed"):
        launches.launch([], None)
    [record] = caplog.record_tuples
    assert record[:2] == ("plugrt.callbacks", logging.ERROR)
    assert "'f' has not ended" in record[2]
    with pytest.raises(FailedPrecondition, match=r"'f' cannot be launched.*it failed"):
        launches.launch([], None)
    ends.set()
    with function.turn:  # acquired once the failed launch has ended
        pass
    assert launches.launch([], None)[0] == []
    assert remembered == []


@pytest.mark.parametrize("begun", [True, False])
def test_an_interrupt_while_the_launch_begins(begun: bool) -> None:
    """The turn is held until a part that has begun ends; if none has, it is released."""
    function, remembered, launched = WatchedFunction(), [], threading.Event()

    def interrupted(*_: Any) -> None:
        assert not begun or launched.wait(60)
        raise KeyboardInterrupt

    def launch(arguments: Any, options: Any) -> Launched:
        launched.set()
        return [], lambda: None

    launches = WatchedLaunches(launch, remembered.append, [function], 2, "main")
    with (
        pytest.raises(KeyboardInterrupt),
        at_calls([_thread.start_new_thread], interrupted, after=begun),
    ):
        launches.launch([], None)
    assert (len(remembered), launched.is_set()) == (begun, begun)
    for wait in remembered:
        wait()
    assert function.turn.acquire(timeout=60)
