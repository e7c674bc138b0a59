"""The launches that a session of a device server waits for before its next launch."""

from __future__ import annotations

import time
from typing import Any

from plugrt.errors import Internal
from plugrt_remote.serving.turns import Turns


class Launch:
    def __init__(self, ended: list[int], number: int, seconds: float) -> None:
        self.ended, self.number, self.seconds = ended, number, seconds

    def wait(self) -> None:
        time.sleep(self.seconds)
        self.ended.append(self.number)
        raise Internal("a launch that failed is no fault of the next")


def launch(turns: Turns, count: int, seconds: float) -> list[int]:
    """Returns for each launch of a session how many launches had been awaited before."""
    ended: list[int] = []
    counts = []
    for number in range(count):
        if turns.is_full():
            turns.wait()
        counts.append(len(ended))
        event: Any = Launch(ended, number, seconds)
        turns.note(event)
    return counts


def test_a_session_waits_for_its_launches_while_another_launches() -> None:
    every: list[Turns] = []
    mine, other = Turns(every), Turns(every)
    every.append(mine)
    assert launch(mine, 4, 0.02) == [0, 0, 0, 0], "it is alone"
    every.append(other)
    assert launch(Turns([other, mine]), 4, 0.02) == [0, 0, 0, 0], "the other has not launched"
    other.is_full()
    assert launch(mine, 3, 0.02)[-1] >= 2, "one is in flight"
