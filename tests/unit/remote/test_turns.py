"""The launches that a session of a device server waits for before its next launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from plugrt.errors import Internal
from plugrt_remote.serving.turns import Turns


class Clock:
    time = 5.0


class Launch:
    def __init__(self, ended: list[int], number: int, seconds: float) -> None:
        self.ended, self.number, self.seconds = ended, number, seconds
        self.callback: Callable[[Any], None] = lambda _: None

    def on_ready(self, callback: Callable[[Any], None]) -> None:
        self.callback = callback

    def is_ready(self) -> bool:
        return self.number in self.ended

    def wait(self) -> None:
        Clock.time += self.seconds
        self.ended.append(self.number)
        self.callback(None)
        raise Internal("a launch that failed is no fault of the next")


def make_turns(every: list[Turns]) -> Turns:
    return Turns(every, lambda: Clock.time)


def launch(turns: Turns, count: int, seconds: float) -> list[int]:
    """Returns for each launch of a session how many launches were in flight with it."""
    ended: list[int] = []
    counts = []
    for number in range(count):
        if turns.is_full():
            turns.wait()
        counts.append(number + 1 - len(ended))
        event: Any = Launch(ended, number, seconds)
        turns.note(event)
    return counts


def test_a_session_waits_for_its_launches_while_another_launches() -> None:
    every: list[Turns] = []
    mine, other = make_turns(every), make_turns(every)
    every.append(mine)
    assert launch(mine, 4, 0.02) == [1, 2, 3, 4], "it is alone"
    every.append(other)
    assert launch(mine, 4, 0.02) == [1, 2, 3, 4], "the other has not launched"
    other.is_full()
    assert launch(mine, 3, 0.02)[-1] <= 2, "one is in flight"


def test_a_session_alone_has_4096_launches_in_flight() -> None:
    every: list[Turns] = []
    mine = make_turns(every)
    every.append(mine)
    ended: list[int] = []
    waited = []
    for number in range(1, 6001):
        if mine.is_full():
            waited.append(number)
            mine.wait()
        if mine.is_noted():
            event: Any = Launch(ended, number, 0.01)
            mine.note(event)
    assert (waited[:2], ended[:2]) == ([4097, 4161], [64, 128])
    ended += range(129, 5953)
    assert not mine.is_full(), "but for the last they have ended"


def test_a_launch_without_an_event_leaves_the_next_to_be_noted() -> None:
    every: list[Turns] = []
    mine = make_turns(every)
    every.append(mine)
    assert [mine.is_noted() for _ in range(66)] == [False] * 63 + [True] * 3
    event: Any = Launch([], 66, 0.01)
    mine.note(event)
    assert not mine.is_noted()


def test_each_session_has_launches_of_the_same_time_in_flight() -> None:
    every: list[Turns] = []
    short, long = make_turns(every), make_turns(every)
    every += [short, long]
    short.is_full()
    assert launch(long, 40, 0.03)[:3] == [1, 1, 1]
    assert launch(short, 60, 0.002)[-1] in (14, 15), "30 ms"
    assert launch(long, 4, 0.03) == [1, 1, 1, 1]


def test_a_wait_for_a_long_launch_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    every: list[Turns] = []
    mine, other = make_turns(every), make_turns(every)
    every += [mine, other]
    other.is_full()
    launch(mine, 2, 9)
    assert caplog.messages == []
    other.is_full()
    launch(mine, 2, 11)
    other.is_full()
    mine.wait()
    assert "waited 11 s" in caplog.text
