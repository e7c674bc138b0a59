"""Notices of ended processes, over a connection whose coordinator answers late."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from plugrt.distributed import watch
from plugrt.errors import DeadlineExceeded, Internal
from plugrt.plugins.coordination import Connection, Membership


class Late(Connection):
    """The connection of process 0 of 2; process 1 announced its end.

    The request with that number, counted from 1, is not answered in time.
    """

    client: Any = None

    def __init__(self, late: int) -> None:
        super().__init__(Membership("here:1", 0, 2, 5.0, 10_000.0, 10.0))
        self.late, self.asked = late, 0

    def try_get(self, key: str) -> bytes | None:
        self.asked += 1
        if self.asked == self.late:
            raise DeadlineExceeded(key)
        return b"ended with ValueError"

    def await_loss(self) -> str:
        return ""

    get = put = delete = wait_at_barrier = live_processes = close = await_loss  # type: ignore[assignment]


class Told(watch.Watch):
    """A watch that records its message instead of raising in the main thread or exiting."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection, look_every=0.01)
        self.messages: list[str] = []
        self.told = threading.Event()

    def _interrupt(self, message: str, seconds: float) -> None:
        self.messages.append(message)
        self.told.set()


@pytest.mark.parametrize("late", range(5))
def test_an_end_is_reported_where_the_coordinator_answers_late(late: int) -> None:
    """Earlier, the watching thread ended, and its process waited for ever."""
    watching = Told(Late(late))
    watching.start()
    try:
        assert watching.told.wait(60)
    finally:
        watching.stop()
    [message] = watching.messages
    assert "process 1 (ended with ValueError) ended with ValueError" in message


@pytest.mark.parametrize("late", range(4))
def test_an_error_is_explained_where_the_coordinator_answers_late(late: int) -> None:
    lost = watch.Watch(Late(late)).explain(Internal("the exchange broke off"))
    assert lost is not None
    assert lost.processes == (1,)
