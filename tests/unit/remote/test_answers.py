"""Messages about results that a session deletes before they are ready."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from plugrt.errors import DeletedBuffer, Internal, PjrtError
from plugrt_remote import wire
from plugrt_remote.serving.answers import Answers
from plugrt_remote.values import unpack


@pytest.mark.parametrize(("error", "is_told"), [(DeletedBuffer, False), (Internal, True)])
def test_a_deletion_is_no_failure_of_the_launch(error: type[PjrtError], is_told: bool) -> None:
    """The client, which deleted the result, may still wait for the launch's end."""
    sent: list[Any] = []

    def fail() -> None:
        raise error("of this test")

    event = SimpleNamespace(is_ready=lambda: True)
    held = [SimpleNamespace(ready_event=lambda: event, block_until_ready=fail)]
    answers: Any = Answers.__new__(Answers)
    answers._send = lambda message, payload=None: sent.append(message)
    answers.notify(1, held, 1)
    [message] = sent
    start = bytes(message).index(wire.READY.pack(1, 1)) + wire.READY.size
    assert (unpack(bytes(message)[start:]) is not None) == is_told
